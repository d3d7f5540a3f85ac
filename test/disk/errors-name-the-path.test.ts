import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Store } from '../../src/core/index.ts'
import { diskStore, storageError } from '../../src/disk/index.ts'
import { anError } from './errors.ts'
import { storeAt, temporaryFolder, temporaryStore } from './temporary-store.ts'

const writes: [string, (store: Store, path: string) => Promise<unknown>][] = [
  ['openLog', (store, path) => store.openLog(path, 0)],
  ['writeWhole', (store, path) => store.writeWhole(path, ['x'])],
  ['publish', (store, path) => store.publish('whole', path)],
]
const reads: [string, (store: Store, path: string) => Promise<unknown>][] = [
  ['readRange', (store, path) => store.readRange(path, 0, 1)],
  ['stream', (store, path) => readAll(store.stream(path))],
]

describe('a file where a folder is needed', () => {
  it.each(writes)('fails %s, naming the path', async (_, write) => {
    const { store } = temporaryStore()
    await store.writeWhole('whole', ['x'])
    await store.writeWhole('state', ['a file'])
    await expect(write(store, 'state/deep/file')).rejects.toEqual(anError('storage', 'state/deep/file'))
    await expect(write(store, 'state/file')).rejects.toEqual(anError('storage', 'state/file'))
  })

  it('has a message of its own for the data set itself', async () => {
    const { store, root } = temporaryStore()
    writeFileSync(root, 'a file')
    await expect(store.writeWhole('_state/lock', ['x'])).rejects.toThrow('is a file, not a folder')
    await expect(store.writeWhole('_manifest.json', ['x'])).rejects.toThrow('is a file, not a folder')
  })

  it.each(reads)('fails %s, naming the path', async (_, read) => {
    const { store } = temporaryStore()
    await store.writeWhole('state', ['a file'])
    await expect(read(store, 'state/file')).rejects.toEqual(anError('storage', 'state/file'))
  })
})

describe('a folder where a file is needed', () => {
  it.each([...writes, ...reads, ['read', (store: Store, path: string) => store.read(path)] as const])(
    'fails %s, naming the path',
    async (_, work) => {
      const { store, root } = temporaryStore()
      await store.writeWhole('whole', ['x'])
      mkdirSync(join(root, 'file/inner'), { recursive: true })
      await expect(work(store, 'file')).rejects.toEqual(anError('storage', 'file'))
    },
  )
})

// Where a parent takes no folder, `mkdir` with `recursive` never ends.
describe.runIf(existsSync('/proc/self'))('a parent that takes no folder', () => {
  it('is an error at once', async () => {
    const store = diskStore({ root: '/proc/spillway', fileMode: 0o600, dirMode: 0o700 })
    await expect(store.writeWhole('a/b', ['x'])).rejects.toEqual(anError('storage', 'a/b'))
  })
})

describe('the free space', () => {
  it('is that of the disk of the data set, and null if that folder is missing', async () => {
    const { store, root } = temporaryStore()
    expect(await store.freeBytes()).toBeNull()
    mkdirSync(root)
    const { bavail, bsize } = statfsSync(root)
    const free = (await store.freeBytes()) ?? 0
    expect(Math.abs(free - bavail * bsize)).toBeLessThan(1e9)
  })
})

describe('a missing file', () => {
  it('reads as null', async () => {
    const { store } = temporaryStore()
    expect(await store.read('no/file')).toBeNull()
    expect(await store.size('no/file')).toBeNull()
    expect(await store.list('no')).toEqual([])
    await store.remove('no/file')
    await store.removeFolder('no')
    await store.removeEmptyFolder('no')
  })

  it.each(reads)('fails %s, naming the path', async (_, read) => {
    const { store } = temporaryStore()
    await expect(read(store, 'no/file')).rejects.toEqual(anError('storage', 'no/file'))
  })

  it('is created anew when the whole data set vanishes between two writes', async () => {
    const { store, root } = temporaryStore()
    await store.writeWhole('state/one', ['1'])
    rmSync(root, { recursive: true })
    await store.writeWhole('state/two', ['2'])
    expect(readFileSync(join(root, 'state/two'), 'utf8')).toBe('2')
  })
})

describe('paths', () => {
  it.each(['../outside', 'a/../../outside', '/etc/hostname', '..'])(
    'can not leave the data set: %s',
    async (path) => {
      const { store, root } = temporaryStore()
      await store.writeWhole('inside', ['x'])
      for (const work of [
        () => store.openLog(path, 0),
        () => store.read(path),
        () => store.readRange(path, 0, 1),
        () => store.size(path),
        () => store.writeWhole(path, ['x']),
        () => store.publish(path, 'here'),
        () => store.publish('inside', path),
        () => store.remove(path),
        () => store.list(path),
        () => store.removeFolder(path),
        () => store.removeEmptyFolder(path),
        () => readAll(store.stream(path)),
      ]) {
        await expect(work()).rejects.toThrow()
      }
      expect(readdirSync(join(root, '..'))).toEqual(['data'])
      expect(readFileSync(join(root, 'inside'), 'utf8')).toBe('x')
    },
  )

  it('are listed in order and removed recursively, or only when empty', async () => {
    const { store } = temporaryStore()
    for (const name of ['b', 'a', 'C']) await store.writeWhole(`folder/${name}`, ['x'])
    expect(await store.list('folder')).toEqual(['C', 'a', 'b'])
    await store.removeEmptyFolder('folder')
    expect(await store.list('folder')).toHaveLength(3)
    for (const name of ['a', 'b', 'C']) await store.remove(`folder/${name}`)
    await store.removeEmptyFolder('folder')
    expect(await store.list('')).toEqual([])
    await store.writeWhole('deep/er/file', ['x'])
    await store.removeFolder('deep')
    expect(await store.list('')).toEqual([])
    await store.writeWhole('deep/er/file', ['y'])
    expect(await store.list('deep')).toEqual(['er'])
  })

  it('that are too long have a message of their own', async () => {
    const { store } = temporaryStore()
    const path = `credentials/query=keyword.${'x'.repeat(300)}/part-00000.csv`
    await store.writeWhole('whole', ['x'])
    await expect(store.publish('whole', path)).rejects.toThrow('too long')
  })
})

// A shell's limit on the size of files, in blocks of 512 bytes, stands in for a full disk.
describe.skipIf(process.platform === 'win32')('a full disk', () => {
  it('fails the write half-way, naming the path; earlier content is intact', () => {
    const folder = temporaryFolder()
    const script = join(import.meta.dirname, 'fill-a-limited-disk.mjs')
    const child = spawnSync(
      'sh',
      ['-c', 'ulimit -f 16; exec "$0" "$1" "$2"', process.execPath, script, folder],
      { encoding: 'utf8' },
    )
    expect(child.stderr).toBe('')
    expect(JSON.parse(child.stdout)).toEqual({
      whole: { kind: 'storage', where: 'manifest', what: 'The file grew beyond the allowed size' },
      log: { kind: 'storage', where: 'log', what: 'The file grew beyond the allowed size' },
      size: 5,
    })
    expect(readdirSync(folder)).toEqual(['log', 'manifest'])
    expect(readFileSync(join(folder, 'manifest'), 'utf8')).toBe('old')
    expect(readFileSync(join(folder, 'log'), 'utf8').slice(0, 10)).toBe('firstafter')
  })
})

describe('a staging directory that a new owner is removing', () => {
  it('is lost already when only its files are gone yet', async () => {
    const { store, root } = temporaryStore()
    const own = await store.fenced('_state/open', '0123456789ab')
    const staging = join(root, '_state/open.0123456789ab')
    // The new owner has a directory of its own.
    await storeAt(root).fenced('_state/open', 'ba9876543210')
    function* whileItIsWritten() {
      for (const name of readdirSync(staging)) rmSync(join(staging, name))
      setTimeout(() => rmdirSync(staging), 150)
      yield 'x'
    }
    await expect(own.writeWhole('_state/lock.0123456789ab', whileItIsWritten())).rejects.toEqual(
      anError('locked'),
    )
  })

  it('is not lost where a file alone is missing', async () => {
    const { store } = temporaryStore()
    const own = await store.fenced('_state/open', '0123456789ab')
    await expect(own.publish('_state/open/missing', 'file')).rejects.toEqual(anError('storage', 'file'))
  })
})

describe('errors of the file system', () => {
  it('keep their code as cause, and show it if they have no message here', () => {
    const cause = Object.assign(new Error('EWEIRD: something'), { code: 'EWEIRD' })
    const error = storageError(cause, 'some/file')
    expect(error).toMatchObject({ message: expect.stringContaining('EWEIRD') })
    expect(error).toMatchObject({ kind: 'storage', where: 'some/file', cause })
    expect(storageError(error, 'elsewhere')).toBe(error)
  })

  it.each(['ENOSPC', 'EDQUOT', 'EFBIG', 'EROFS', 'EACCES', 'EPERM', 'EMFILE', 'ENOENT', 'EIO'])(
    '%s has a message of its own',
    (code) => {
      const error = storageError(Object.assign(new Error(code), { code }), 'some/file')
      expect(error).toMatchObject({ what: expect.not.stringContaining(code) })
    },
  )
})

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0
  for await (const chunk of chunks) bytes += chunk.byteLength
  return bytes
}
