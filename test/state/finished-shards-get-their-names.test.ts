import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/core/index.ts'
import { openSettledCheckpoint } from '../../src/run/data-set/recover.ts'
import { anError } from '../disk/errors.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { HEADER, seal, writeCheckpoint } from './lines.ts'

describe('finished shards', () => {
  const PATH = 'credentials/part-00000.csv'

  async function withSeal(): Promise<Store> {
    const { store } = temporaryStore()
    await writeCheckpoint(store, [HEADER, seal(3, PATH, { bytes: 10 })])
    return store
  }

  async function settle(store: Store): Promise<void> {
    const checkpoint = await openSettledCheckpoint(
      store,
      HEADER,
      () => {},
      () => {},
    )
    await checkpoint.close()
  }

  it('get their names after a crash that came first', async () => {
    const store = await withSeal()
    await store.writeWhole('_state/open/3.part', ['0123456789'])
    for (let time = 0; time < 2; time++) {
      await settle(store)
      expect(await store.size(PATH)).toBe(10)
      expect(await store.size('_state/open/3.part')).toBeNull()
    }
  })

  it.each([
    ['is missing', null, null],
    ['is short', '012345678', null],
    ['is too long', '0123456789+', null],
    ['is missing, and was never whole', null, '012345678'],
    ['is short, whatever stands among the open ones', '012345678', '0123456789'],
  ])('are refused when one %s, and stay as they are', async (_, final, open) => {
    const store = await withSeal()
    if (final !== null) await store.writeWhole(PATH, [final])
    if (open !== null) await store.writeWhole('_state/open/3.part', [open])
    await expect(settle(store)).rejects.toEqual(anError('damaged', PATH))
    expect(await store.size(PATH)).toBe(final?.length ?? null)
    expect(await store.size('_state/open/3.part')).toBe(open?.length ?? null)
  })
})
