import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { isExportError, type Store } from '../../../src/core/index.ts'
import { newOwner } from '../../disk/temporary-store.ts'
import { pieces } from '../../support/pieces.ts'
import { gatewayTo } from './gateway.ts'
import { contentsOf, nextOwner, type World } from './world.ts'

/** A location in a bucket that other programs use as well. */
export type BucketWorld = World & {
  readonly endpoint: string
  /** Opens the same store at another address. */
  readonly openAt: (endpoint: string) => Store
  /** Marks a folder as other programs do: with objects of no bytes. */
  readonly markFolder: (folder: string) => Promise<void>
  /** Refuses a request since its time differs too much from the store's. */
  readonly refuseTime: (response: ServerResponse) => void
}

// More than one part, with an incomplete last one.
export const LARGE = randomBytes(9 << 20)

/** Every kind of request of a run. @returns what is there afterwards */
export async function workThrough(store: Store) {
  const own = await store.own(newOwner())
  await own.replace('_state/checkpoint.jsonl', ['begun;'])
  expect(await own.create('_state/log/1', ['page'])).toBe(true)
  expect(await own.create('_state/log/1', ['page'])).toBe(false)
  await own.build(pieces(['one,', LARGE]), () => '_state/sealed/0')
  await own.publish('_state/sealed/0', 'credentials/part-0')
  expect(await own.create('_state/sealed/1', ['small'])).toBe(true)
  await own.publish('_state/sealed/1', 'credentials/part-1')
  for (const text of ['one', 'two', 'three']) await own.replace('_manifest.json', [text])
  await own.replace('_SUCCESS', [])
  await own.remove('_SUCCESS')
  await own.replace('_state/checkpoint.jsonl', ['begun;page;end;'])
  await own.create('_state/log/2', ['page'])
  await own.remove('_state/log/2')
  await own.release()
  const large = (await store.read('credentials/part-0')) ?? new Uint8Array()
  return {
    texts: await contentsOf(store, Object.keys(WORKED.texts)),
    isLargeWhole: Buffer.concat([Buffer.from('one,'), LARGE]).equals(large),
    state: await store.list('_state'),
  }
}

export const WORKED = {
  texts: {
    '_state/checkpoint.jsonl': 'begun;page;end;',
    '_state/log/1': 'page',
    '_state/log/2': null,
    '_state/sealed/0': null,
    'credentials/part-1': 'small',
    '_manifest.json': 'three',
    _SUCCESS: null,
  },
  isLargeWhole: true,
  state: ['checkpoint.jsonl', 'log'],
}

/** Whether a request has a checksum that only some stores know. */
function hasChecksum(headers: IncomingHttpHeaders): boolean {
  const names = Object.keys(headers).filter((name) => /checksum|crc64|x-amz-trailer/.test(name))
  return names.length > 0 || headers['content-encoding'] === 'aws-chunked'
}

export function bucketsOfOthers(make: () => BucketWorld): void {
  describe('a bucket', () => {
    it('has each change once, if every response is lost the first time', async () => {
      const { endpoint, openAt } = make()
      const gateway = await gatewayTo(endpoint, { losesFirst: true })
      expect(await workThrough(openAt(gateway.endpoint))).toEqual(WORKED)
      const methods = new Set(gateway.lost.map((name) => name.split(' ', 1)[0]))
      expect([...methods].sort()).toEqual(expect.arrayContaining(['DELETE', 'GET', 'HEAD', 'PUT']))
    })

    it('needs to know no checksums of requests', async () => {
      const { endpoint, openAt } = make()
      const gateway = await gatewayTo(endpoint, {
        refuse: ({ headers }) =>
          hasChecksum(headers) ? (response) => void response.writeHead(501).end() : null,
      })
      expect(await workThrough(openAt(gateway.endpoint))).toEqual(WORKED)
    })

    it('may hold marks of folders, which are no files', async () => {
      const world = make()
      const own = await nextOwner(world)
      const folders = ['credentials/query=a', 'credentials/query=a.b']
      for (const folder of folders) await own.create(`${folder}/part-0`, ['12345'])
      for (const folder of ['', '_state', 'credentials', ...folders]) await world.markFolder(folder)
      const other = world.open()
      expect(await other.list('')).toEqual(['_state', 'credentials'])
      expect(await other.list('credentials')).toEqual(['query=a', 'query=a.b'])
      for (const folder of folders) {
        expect(await other.list(folder)).toEqual(['part-0'])
        expect(await other.size(folder)).toBeNull()
        expect(await other.read(folder)).toBeNull()
        expect(await other.read(folder, 0, 0)).toBeNull()
      }
      const files = folders.flatMap((path) => [
        { path, names: 1 },
        { path: `${path}/part-0`, bytes: 5 },
      ])
      expect(await other.mismatches([{ path: 'credentials', names: 2 }, ...files])).toEqual([])
      const next = await nextOwner(world)
      await next.remove('credentials/query=a/part-0')
      expect(await next.create('credentials/query=a/part-1', ['1'])).toBe(true)
      expect(await other.list('credentials/query=a')).toEqual(['part-1'])
    })

    it('that refuses the time of a request has it named', async () => {
      const { endpoint, openAt, refuseTime } = make()
      const gateway = await gatewayTo(endpoint, { refuse: () => refuseTime })
      const error = await openAt(gateway.endpoint)
        .list('')
        .catch((thrown: unknown) => thrown)
      expect(isExportError(error, 'storage') && error.message).toContain('clock')
    })
  })
}
