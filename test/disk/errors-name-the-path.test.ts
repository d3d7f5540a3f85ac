import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import { storageError } from '../../src/disk/storage-error.ts'
import { pieces } from '../support/pieces.ts'
import { anError } from './errors.ts'
import { newOwner, storeAt, temporaryStore, write } from './temporary-store.ts'

const writes: [string, (own: OwnedStore, path: string) => Promise<unknown>][] = [
  ['create', (own, path) => own.create(path, ['x'])],
  ['replace', (own, path) => own.replace(path, ['x'])],
  ['publish', (own, path) => own.publish('whole', path)],
]

describe('a file where a folder is needed', () => {
  it.each(writes)('fails %s, naming the path', async (_, work) => {
    const { store } = temporaryStore()
    const own = await store.own(newOwner())
    await own.create('whole', ['x'])
    await own.create('state', ['a file'])
    await expect(work(own, 'state/deep/file')).rejects.toEqual(anError('storage', 'state/deep/file'))
    await expect(work(own, 'state/file')).rejects.toEqual(anError('storage', 'state/file'))
  })

  it('fails stream, naming the path', async () => {
    const { store } = temporaryStore()
    await write(store, 'state', 'a file')
    await expect(readAll(store.stream('state/file'))).rejects.toEqual(anError('storage', 'state/file'))
  })
})

describe('a folder where a file is needed', () => {
  const reads: typeof writes = [
    ['stream', (own, path) => readAll(own.stream(path))],
    ['read', (own, path) => own.read(path)],
  ]
  it.each([...writes, ...reads])('fails %s, naming the path', async (_, work) => {
    const { store, root } = temporaryStore()
    const own = await store.own(newOwner())
    await own.create('whole', ['x'])
    mkdirSync(join(root, 'file/inner'), { recursive: true })
    await expect(work(own, 'file')).rejects.toEqual(anError('storage', 'file'))
  })
})

// Where a parent takes no folder, `mkdir` with `recursive` never ends.
it.runIf(existsSync('/proc/self'))('a parent that takes no folder is an error at once', async () => {
  await expect(storeAt('/proc/spillway').own(newOwner())).rejects.toEqual(anError('storage', '_state'))
})

it('the free space is that of the disk of the data set, also before there is a folder', async () => {
  const { store, root } = temporaryStore()
  const before = (await store.freeBytes()) ?? 0
  mkdirSync(root)
  const { bavail, bsize } = statfsSync(root)
  const free = (await store.freeBytes()) ?? 0
  expect(Math.abs(free - bavail * bsize)).toBeLessThan(1e9)
  expect(Math.abs(free - before)).toBeLessThan(1e9)
})

it('a data set that vanishes between two writes is an error, and does not come back', async () => {
  const { store, root } = temporaryStore()
  const own = await store.own(newOwner())
  await own.create('state/one', ['1'])
  rmSync(root, { recursive: true })
  await expect(own.create('state/two', ['2'])).rejects.toEqual(anError('storage', 'state/two'))
  expect(existsSync(root)).toBe(false)
  await own.release()
})

describe('paths', () => {
  it.each(['../outside', 'a/../../outside', '/etc/hostname', '..'])(
    'cannot leave the data set: %s',
    async (path) => {
      const { store, root } = temporaryStore()
      const own = await store.own(newOwner())
      await own.create('inside', ['x'])
      for (const work of [
        () => own.read(path),
        () => own.size(path),
        () => own.create(path, ['x']),
        () => own.replace(path, ['x']),
        () => own.publish(path, 'here'),
        () => own.publish('inside', path),
        () => own.build(pieces(['x']), () => path),
        () => own.remove(path),
        () => own.list(path),
        () => readAll(own.stream(path)),
      ]) {
        await expect(work()).rejects.toThrow()
      }
      expect(readdirSync(join(root, '..'))).toEqual(['data'])
      expect(readFileSync(join(root, 'inside'), 'utf8')).toBe('x')
    },
  )

  it('that are too long have a message of their own', async () => {
    const { store } = temporaryStore()
    const path = `credentials/query=keyword.${'x'.repeat(300)}/part-00000.csv`
    const own = await store.own(newOwner())
    await own.create('whole', ['x'])
    await expect(own.publish('whole', path)).rejects.toThrow('too long')
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
