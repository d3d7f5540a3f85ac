import { expect, it } from 'vitest'
import { clearDataSet } from '../../src/data-set/open/clear-data-set.ts'
import {
  bringSuppression,
  newSuppression,
  readSuppression,
  SUPPRESSION_PATH,
  suppressionEntry,
  suppressionFileOf,
} from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { append, openAs, own, stateIn } from './lines.ts'

const { key } = newSuppression()
const of = (...digests: readonly string[]) => ({ key, digests })

it('file and log get the people of both, whichever of them lacks some', async () => {
  const { store } = temporaryStore()
  const owned = await own(store)
  for (const [file, logged] of [
    [of(), of('a')],
    [of('a', 'b'), of('a')],
    [of('b', 'c'), of('a', 'b')],
  ] as const) {
    const all = of(...new Set([...logged.digests, ...file.digests].sort()))
    await append(store, suppressionEntry(logged))
    await owned.replace(...suppressionFileOf(file))
    expect(await readSuppression(store, await stateIn(store))).toEqual(all)
    const journal = await openAs(owned)
    expect(await bringSuppression(owned, journal)).toEqual(all)
    await journal.close()
    expect(await readSuppression(store, null)).toEqual(all)
    expect((await stateIn(store)).suppression?.digests).toEqual(all.digests)
  }
})

it('a data set that starts over keeps people that only the log has', async () => {
  const { store } = temporaryStore()
  const owned = await own(store)
  await append(store, suppressionEntry(of('a')))
  await owned.replace(...suppressionFileOf(of()))
  await clearDataSet(owned, () => {})
  expect(await readSuppression(store, null)).toEqual(of('a'))
})

it('without their key, or with another one, they are lost; before they are logged, the file alone counts', async () => {
  const { store } = temporaryStore()
  const owned = await own(store)
  await owned.replace(...suppressionFileOf(of()))
  const journal = await openAs(owned)
  await bringSuppression(owned, journal)
  await journal.close()
  expect(await readSuppression(store, null)).toBe(null)
  await append(store, suppressionEntry(of('a')))
  const state = await stateIn(store)
  const lost = anError('damaged', SUPPRESSION_PATH)
  await expect(readSuppression(store, state)).rejects.toEqual(lost)
  await owned.replace(...suppressionFileOf({ ...newSuppression(), digests: ['a'] }))
  await expect(readSuppression(store, state)).rejects.toEqual(lost)
  await owned.replace(...suppressionFileOf(of('b')))
  expect(await readSuppression(store, null)).toEqual(of('b'))
  const text = Buffer.from((await store.read(SUPPRESSION_PATH))!).toString()
  for (const changed of [text.slice(0, -1), text.replace('"b"', '"c"'), `${text}{}\n`, '']) {
    await owned.replace(SUPPRESSION_PATH, [changed])
    await expect(readSuppression(store, null)).rejects.toEqual(lost)
  }
})
