import { describe, expect, it } from 'vitest'
import type { Store } from '../../../src/core/index.ts'
import { anError } from '../../disk/errors.ts'
import { type MakeWorld, streamed } from './world.ts'

const PATH = 'credentials/query=a/part-00000.csv'

const NEED_IT: readonly [name: string, work: (store: Store) => Promise<unknown>][] = [
  ['readRange', (store) => store.readRange(PATH, 0, 1)],
  ['readInto', (store) => store.readInto(PATH, new Uint8Array(1))],
  ['stream', (store) => streamed(store, PATH)],
]

export function errorsNameThePath(make: MakeWorld): void {
  describe('a missing file', () => {
    it('reads as null, and can be removed', async () => {
      const { open, names } = await make()
      const store = open()
      expect(await store.read(PATH)).toBeNull()
      expect(await store.size(PATH)).toBeNull()
      expect(await store.list('credentials')).toEqual([])
      await store.remove(PATH)
      await store.removeFolder('credentials')
      await store.removeEmptyFolder('credentials')
      expect(await names()).toEqual([])
    })

    it.each(NEED_IT)('fails %s, naming the path', async (_, work) => {
      const { open } = await make()
      await expect(work(open())).rejects.toEqual(anError('storage', PATH))
    })

    it('can not be published', async () => {
      const { open } = await make()
      await expect(open().publish('_state/open/none', PATH)).rejects.toEqual(anError('storage'))
      expect(await open().read(PATH)).toBeNull()
    })
  })

  it('the free space is known, or null', async () => {
    const { open } = await make()
    await open().writeWhole(PATH, ['x'])
    const free = await open().freeBytes()
    expect(free === null || free > 0).toBe(true)
  })
}
