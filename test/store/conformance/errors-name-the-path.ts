import { describe, expect, it } from 'vitest'
import { anError } from '../../disk/errors.ts'
import { type MakeWorld, nextOwner, streamed } from './world.ts'

const PATH = 'credentials/query=a/part-00000.csv'

export function errorsNameThePath(make: MakeWorld): void {
  describe('a missing file', () => {
    it('reads as null', async () => {
      const { open, names } = await make()
      expect(await open().read(PATH)).toBeNull()
      expect(await open().read(PATH, 3, 7)).toBeNull()
      expect(await open().size(PATH)).toBeNull()
      expect(await open().list('credentials')).toEqual([])
      expect(await names()).toEqual([])
    })

    it('cannot be streamed; the error names the path', async () => {
      const { open } = await make()
      await expect(streamed(open(), PATH)).rejects.toEqual(anError('storage', PATH))
    })
  })

  it('the free space is known, or null', async () => {
    const world = await make()
    await (await nextOwner(world)).create(PATH, ['x'])
    const free = await world.open().freeBytes()
    expect(free === null || free > 0).toBe(true)
  })
}
