import { existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Folders } from '../../src/disk/folders.ts'
import { diskStore } from '../../src/disk/index.ts'
import { DataSetGone } from '../../src/disk/staging-directory.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { pieces } from '../support/pieces.ts'
import { anError } from './errors.ts'
import { newOwner, temporaryStore, write } from './temporary-store.ts'

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

describe('files and folders', () => {
  it('are readable by their owner alone', async () => {
    const { store, root } = temporaryStore()
    const id = newOwner()
    const own = await store.own(id)
    await own.replace('_manifest.json', ['{}'])
    const path = (): string => {
      const [temporary = ''] = readdirSync(join(root, `_state/open.${id}`))
      expect(modeOf(join(root, `_state/open.${id}`, temporary))).toBe('600')
      return '_state/sealed/0'
    }
    await own.build(pieces(['x']), path)
    await own.publish('_state/sealed/0', 'credentials/query=a/part-00000.csv')
    const folders = ['', '_state', `_state/open.${id}`, '_state/sealed', 'credentials', 'credentials/query=a']
    for (const folder of folders) expect(modeOf(join(root, folder)), folder).toBe('700')
    for (const file of ['_manifest.json', 'credentials/query=a/part-00000.csv'])
      expect(modeOf(join(root, file))).toBe('600')
  })

  it('have the configured modes', async () => {
    const root = join(scratchFolder(), 'data')
    await write(diskStore({ root, fileMode: 0o640, dirMode: 0o750 }), 'a/b', '')
    expect(modeOf(join(root, 'a'))).toBe('750')
    expect(modeOf(join(root, 'a/b'))).toBe('640')
  })
})

it('a file that two owners publish at the same moment gets its name once', async () => {
  const { store, root } = temporaryStore()
  const own = await store.own(newOwner())
  const path = 'credentials/part-00000.csv'
  for (let time = 0; time < 20; time++) {
    await own.create('_state/sealed/0', [`rows ${time}`])
    await Promise.all([own.publish('_state/sealed/0', path), own.publish('_state/sealed/0', path)])
    expect(readFileSync(join(root, path), 'utf8')).toBe(`rows ${time}`)
    expect(existsSync(join(root, '_state/sealed/0'))).toBe(false)
    await own.remove(path)
  }
})

describe('a folder', () => {
  it('that becomes empty goes, up to the data set', async () => {
    const { store, root } = temporaryStore()
    const own = await store.own(newOwner())
    await own.create('credentials/a/b/1', ['x'])
    await own.create('credentials/c', ['x'])
    await own.remove('credentials/a/b/1')
    expect(readdirSync(join(root, 'credentials'))).toEqual(['c'])
    await own.remove('credentials/c')
    expect(existsSync(join(root, 'credentials'))).toBe(false)
    // A crash may come between the file and its folder.
    await own.create('credentials/a/1', ['x'])
    rmSync(join(root, 'credentials/a/1'))
    await own.remove('credentials/a/1')
    expect(readdirSync(root)).toEqual(['_state'])
  })

  it('that was removed meanwhile is made again', async () => {
    const { store, root } = temporaryStore()
    const own = await store.own(newOwner())
    await own.create('credentials/a/first', ['1'])
    await own.create('_state/sealed/0', ['rows'])
    rmSync(join(root, 'credentials'), { recursive: true })
    await own.publish('_state/sealed/0', 'credentials/a/second')
    expect(readFileSync(join(root, 'credentials/a/second'), 'utf8')).toBe('rows')
  })

  it('is not made again when the whole data set was removed, also right after a file got its name', async () => {
    const root = join(scratchFolder(), 'data')
    const folders = new Folders(root, 0o700)
    const naming = folders.naming(join(root, '_state/log'), async () => rmSync(root, { recursive: true }))
    await expect(naming).rejects.toThrow(DataSetGone)
    await expect(folders.naming(join(root, '_state/sealed'), async () => {})).rejects.toThrow(DataSetGone)
    expect(existsSync(root)).toBe(false)
  })

  it('is not made for a file that is missing, or by a former owner', async () => {
    const { store, root } = temporaryStore()
    const id = newOwner()
    const own = await store.own(id)
    await expect(own.publish('_state/sealed/0', 'credentials/a')).rejects.toEqual(anError('storage'))
    await (await store.own(newOwner())).takeOver([id])
    await expect(own.create('credentials/a', ['x'])).rejects.toEqual(anError('locked'))
    expect(readdirSync(root)).toEqual(['_state'])
  })
})

describe.skipIf(process.platform === 'win32')('a symbolic link', () => {
  it('is not followed, written over or removed', async () => {
    const { store, root } = temporaryStore()
    const elsewhere = scratchFolder()
    const own = await store.own(newOwner())
    await own.create('_state/sealed/0', ['x'])
    symlinkSync(elsewhere, join(root, 'credentials'))
    symlinkSync(join(elsewhere, 'file'), join(root, '_manifest.json'))
    for (const work of [
      () => own.create('credentials/a', ['x']),
      () => own.publish('_state/sealed/0', 'credentials/a'),
      () => own.replace('_manifest.json', ['x']),
      () => own.create('_manifest.json', ['x']),
      () => own.remove('_manifest.json'),
      () => own.read('_manifest.json'),
    ])
      await expect(work()).rejects.toEqual(anError('storage'))
    expect(readdirSync(elsewhere)).toEqual([])
  })
})
