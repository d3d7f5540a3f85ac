import { describe, expect, it } from 'vitest'
import { type MakeWorld, textOf, writeLog } from './world.ts'

export function namesAreListed(make: MakeWorld): void {
  describe('names', () => {
    it('are listed in order, files and folders, until they are removed', async () => {
      const { open } = await make()
      const store = open()
      expect(await store.list('')).toEqual([])
      for (const path of [
        'credentials/b',
        'credentials/a',
        'credentials/C',
        'credentials/a0/x',
        '_manifest.json',
      ])
        await store.writeWhole(path, ['x'])
      expect(await open().list('')).toEqual(['_manifest.json', 'credentials'])
      expect(await open().list('credentials')).toEqual(['C', 'a', 'a0', 'b'])
      expect(await open().list('credentials/a0')).toEqual(['x'])
      expect(await open().list('cred')).toEqual([])
      expect(await open().list('none/at/all')).toEqual([])
      for (const name of ['a', 'b', 'C', 'a0/x']) await store.remove(`credentials/${name}`)
      await store.removeEmptyFolder('credentials/a0')
      await store.removeEmptyFolder('credentials')
      expect(await open().list('')).toEqual(['_manifest.json'])
    })

    it('are those of files alone, however these were written', async () => {
      const { open } = await make()
      const store = open()
      await writeLog(store, '_state/ids/0.0.ids', 'one', 'two', 'three')
      await writeLog(store, '_state/checkpoint.jsonl', 'one', 'two', 'three')
      expect(await open().list('_state')).toEqual(['checkpoint.jsonl', 'ids'])
      expect(await open().list('_state/ids')).toEqual(['0.0.ids'])
    })

    // Storage that lists page by page has small pages here.
    it('may be many', async () => {
      const { open } = await make()
      const store = open()
      const names = Array.from({ length: 50 }, (_, number) => String(number).padStart(5, '0'))
      for (const folder of names.slice(0, 10)) await store.writeWhole(`credentials/${folder}/x`, ['x'])
      await Promise.all(names.map((name) => store.writeWhole(`_quarantine/${name}`, [name])))
      expect(await open().list('_quarantine')).toEqual(names)
      expect(await open().list('credentials')).toEqual(names.slice(0, 10))
      await open().removeFolder('_quarantine')
      expect(await store.list('_quarantine')).toEqual([])
    })

    it('of a folder are removed with it, and no others', async () => {
      const { open, names } = await make()
      const store = open()
      for (const path of ['credentials/a/1', 'credentials/a/deep/2', 'credentials/ab/3', 'credentials/a.csv'])
        await store.writeWhole(path, [path])
      await writeLog(store, '_state/ids/0', 'one', 'two')
      await store.removeFolder('credentials/a')
      expect(await open().list('credentials')).toEqual(['a.csv', 'ab'])
      expect(await textOf(open(), 'credentials/ab/3')).toBe('credentials/ab/3')
      await store.removeFolder('credentials/a.csv')
      await store.removeFolder('credentials/none')
      await store.removeFolder('_state')
      expect(await open().list('credentials')).toEqual(['ab'])
      expect(await open().list('')).toEqual(['credentials'])
      expect(await names()).toHaveLength(1)
    })

    it('of a folder stay when only an empty folder is to be removed', async () => {
      const { open } = await make()
      const store = open()
      await store.writeWhole('_quarantine/a.jsonl', ['x'])
      await store.removeEmptyFolder('_quarantine')
      await store.removeEmptyFolder('none')
      expect(await open().list('_quarantine')).toEqual(['a.jsonl'])
    })

    it('can be used again after removal', async () => {
      const { open } = await make()
      const store = open()
      await store.writeWhole('credentials/a/1', ['first'])
      await store.removeFolder('credentials')
      expect(await open().read('credentials/a/1')).toBeNull()
      await store.writeWhole('credentials/a/1', ['again'])
      expect(await textOf(open(), 'credentials/a/1')).toBe('again')
      await writeLog(store, '_state/open/0.log', 'a long first content, ', 'and more of it')
      await store.remove('_state/open/0.log')
      await store.remove('_state/open/0.log')
      expect(await open().size('_state/open/0.log')).toBeNull()
      await writeLog(store, '_state/open/0.log', 'again')
      expect(await textOf(open(), '_state/open/0.log')).toBe('again')
    })
  })
}
