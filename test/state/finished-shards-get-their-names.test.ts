import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import { openChecked } from '../../src/data-set/open/open-checked.ts'
import { sealedPath } from '../../src/load/index.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { commitLines, HEADER, own, seal } from './lines.ts'

const PATH = 'credentials/part-00000.csv'

const TEXT = '0123456789'
const SHA256 = createHash('sha256').update(TEXT).digest('hex')
const SEALED = sealedPath(3, SHA256)

async function withSeal(): Promise<OwnedStore> {
  const { store } = temporaryStore()
  await commitLines(store, [HEADER, seal(3, PATH, { bytes: 10, sha256: SHA256 })])
  return own(store)
}

async function settle(store: OwnedStore): Promise<void> {
  const journal = await openChecked(store, HEADER)
  await journal.close()
}

it('sealed shards get their names after a crash that came first', async () => {
  const store = await withSeal()
  await store.create(SEALED, [TEXT])
  for (let time = 0; time < 2; time++) {
    await settle(store)
    expect(await store.size(PATH)).toBe(10)
    expect(await store.size(SEALED)).toBeNull()
  }
})

it.each([
  ['is missing', null, null, PATH],
  ['is short', '012345678', null, PATH],
  ['is too long', '0123456789+', null, PATH],
  ['is missing, and was never whole', null, '012345678', PATH],
  ['is missing, and has changed since it was sealed', null, '9876543210', SEALED],
  ['is short, whatever stands among the sealed ones', '012345678', '0123456789', PATH],
])('sealed shards are refused when one %s, and stay as they are', async (_, final, open, where) => {
  const store = await withSeal()
  if (final !== null) await store.create(PATH, [final])
  if (open !== null) await store.create(SEALED, [open])
  await expect(settle(store)).rejects.toEqual(anError('damaged', where))
  expect(await store.size(PATH)).toBe(final?.length ?? null)
  expect(await store.size(SEALED)).toBe(open?.length ?? null)
})
