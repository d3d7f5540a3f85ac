import { describe, expect, it } from 'vitest'
import { THOROUGH } from '../../support/thorough.ts'
import { type MakeWorld, nextOwner } from './world.ts'

export function namesAreListed(make: MakeWorld): void {
  describe('names', () => {
    // Storage that lists page by page has small pages here.
    it('may be many', async () => {
      const world = await make()
      const own = await nextOwner(world)
      const names = Array.from({ length: 50 }, (_, number) => String(number).padStart(5, '0'))
      for (const folder of names.slice(0, 10)) await own.create(`credentials/${folder}/x`, ['x'])
      await Promise.all(names.map((name) => own.create(`_quarantine/${name}`, [name])))
      expect(await world.open().list('_quarantine')).toEqual(names)
      expect(await world.open().list('credentials')).toEqual(names.slice(0, 10))
      await Promise.all(names.map((name) => own.remove(`_quarantine/${name}`)))
      expect(await world.open().list('')).toEqual(['_state', 'credentials'])
    })

    it('are whole whatever is created and removed in a folder at the same time', async () => {
      const world = await make()
      const own = await nextOwner(world)
      const work = async (task: number): Promise<void> => {
        for (let round = 0; round < (THOROUGH ? 8 : 3); round++) {
          const path = `credentials/${round % 2}/${task}`
          expect(await own.create(path, [path])).toBe(true)
          await own.remove(path)
        }
        expect(await own.create(`credentials/0/${task}`, ['x'])).toBe(true)
      }
      await Promise.all(Array.from({ length: 8 }, (_, task) => work(task)))
      expect(await world.open().list('credentials')).toEqual(['0'])
      expect(await world.open().list('credentials/0')).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'])
    })
  })
}
