import { describe, expect, it, vi } from 'vitest'
import type { OwnedStore, Store } from '../../src/core/index.ts'
import { refusal } from '../disk/errors.ts'
import { newOwner, write } from '../disk/temporary-store.ts'
import { WORKED, workThrough } from '../store/conformance/buckets-of-others.ts'
import { BUCKET, putObject } from '../support/bucket.ts'
import { some } from '../support/thorough.ts'
import type { Trouble } from './double/cues.ts'
import { CHANGES, type OperationName } from './double/operations/index.ts'
import { eachInABucket } from './each-in-a-bucket.ts'

const here = eachInABucket()

describe('temporary errors', () => {
  const OPERATIONS: readonly OperationName[] = [
    ...(['GetObject', 'HeadObject', 'ListObjectsV2'] as const),
    ...CHANGES.filter((name) => name !== 'AbortMultipartUpload'),
  ]
  const TROUBLES: readonly (readonly [name: string, trouble: Trouble])[] = [
    ['a store that is too busy', { code: 'SlowDown' }],
    ['a store that fails', { code: 'InternalError' }],
    ['connections that break before a request', { connection: 'reset-before' }],
  ]

  // With lost responses: `test/store/s3-store-conforms`.
  it.each(some(TROUBLES, 2))('%s: every request is repeated, with one effect', async (_, trouble) => {
    for (const operation of OPERATIONS) here.double.cues.fail({ operation }, { ...trouble, times: 1 })
    expect(await workThrough(here.open())).toEqual(WORKED)
    expect(here.double.uploads(BUCKET)).toEqual([])
    expect([...here.double.objects(BUCKET).keys()].filter((key) => key.includes('open'))).toEqual([])
  })

  it.each([
    ['a store without lists of uploads', 'ListMultipartUploads', { code: 'NotImplemented', times: 99 }],
    ['a write that another one meets', 'PutObject', { code: 'ConditionalRequestConflict' }],
    ['bodies that break off', 'GetObject', { connection: 'cut-response', times: 2 }],
  ] as const)('%s: all work is done', async (_, operation, trouble) => {
    here.double.cues.fail({ operation }, trouble)
    expect(await workThrough(here.open())).toEqual(WORKED)
    expect(here.double.uploads(BUCKET)).toEqual([])
  })

  // Source: Amazon S3 user guide, "Object Lock considerations": uploads need `Content-MD5` or another checksum.
  it('a bucket with a default retention takes every write, because each has its MD5', async () => {
    await workThrough(here.open())
    const writes = here.double.requests({ operation: ['PutObject', 'UploadPart'] })
    expect(new Set(writes.map(({ operation }) => operation)).size).toBe(2)
    expect(writes.filter(({ headers }) => !headers.has('content-md5'))).toEqual([])
  })

  it('a store that says that an object exists, and has none, is no store that has it', async () => {
    const own = await here.open().own(newOwner())
    here.double.cues.fail({ operation: 'PutObject' }, { code: 'ConditionalRequestConflict', times: 99 })
    const error = await refusal(own.create('_state/sealed/4', ['rows']))
    expect(error).toMatchObject({ kind: 'storage', where: '_state/sealed/4' })
    here.double.cues.clear()
    expect(await own.create('_state/sealed/4', ['rows'])).toBe(true)
  })
})

describe('permanent errors', () => {
  it('name the path, the reason and what to do', async () => {
    here.double.cues.fail({ operation: 'PutObject' }, { code: 'InternalError', times: 99 })
    const error = await refusal(write(here.open(), '_manifest.json', '{}'))
    expect(error).toMatchObject({ kind: 'storage', where: '_state' })
    expect(error.message).toContain('500')
    expect(error.message).toContain('run again')
    expect(here.double.objects(BUCKET).size).toBe(0)
  })

  it.each([
    ['a bucket that is not there', { bucket: 'nobody' }, 'config', 'no such bucket'],
    ['a server that is not there', { endpoint: 'http://127.0.0.1:9' }, 'storage', 'ECONNREFUSED'],
  ] as const)('name %s', async (_, changes, kind, word) => {
    const error = await refusal(here.open(changes).list(''))
    expect(error.kind).toBe(kind)
    expect(error.message).toContain(word)
  })

  it.each([
    ['AWS_ACCESS_KEY_ID', 'access key'],
    ['AWS_SECRET_ACCESS_KEY', 'secret access key'],
  ])('name a wrong %s, without its value', async (variable, word) => {
    vi.stubEnv(variable, 'wrong-but-secret-0123456789')
    const error = await refusal(here.open().list(''))
    expect(error.kind).toBe('credentials')
    expect(error.message).toContain(word)
    expect(JSON.stringify([error.message, error.stack])).not.toContain('wrong-but-secret')
  })

  it('name a wrong clock', async () => {
    here.double.clockSkewMs = 3_600_000
    // The SDK adopts the store's time once it knows it.
    expect(await here.open().list('')).toEqual([])
  })

  it('name a missing permission', async () => {
    here.double.cues.fail({ operation: 'ListObjectsV2' }, { code: 'AccessDenied', times: 9 })
    const error = await refusal(here.open().list(''))
    expect(error.kind).toBe('storage')
    expect(error.message).toContain('s3:ListBucket')
  })
})

const textOf = async (store: Pick<Store, 'read'>, path: string) =>
  Buffer.from((await store.read(path))!).toString()

describe('a former owner', () => {
  const publish = (own: OwnedStore) => own.publish('_state/sealed/0', 'credentials/part-00000.csv')

  it.each([
    ['PutObject', /_manifest/, (own: OwnedStore) => own.replace('_manifest.json', ['late'])],
    ['CopyObject', /part-00000/, publish],
  ] as const)('whose %s is late changes nothing', async (operation, key, change) => {
    const store = here.open()
    const late = newOwner()
    const [own, next] = [await store.own(late), await store.own(newOwner())]
    await own.replace('_manifest.json', ['old'])
    await own.create('_state/sealed/0', ['rows'])
    here.double.cues.before({ operation, key }, async () => {
      await next.takeOver([late])
      await publish(next)
      await next.replace('_manifest.json', ['new'])
    })
    expect((await refusal(change(own))).kind).toMatch(/^(?:locked|storage)$/)
    expect(await textOf(next, '_manifest.json')).toBe('new')
    expect(await textOf(next, 'credentials/part-00000.csv')).toBe('rows')
    await next.replace('_manifest.json', ['newer'])
  })

  it('whose write arrives after the next owner has looked is overwritten', async () => {
    const store = here.open()
    const late = newOwner()
    const own = await store.own(late)
    await own.replace('_manifest.json', ['old'])
    const next = await store.own(newOwner())
    await next.takeOver([late])
    // The next owner has seen the ETag, but has not written yet: this write was under way for long.
    here.double.cues.before({ operation: 'PutObject', key: /_manifest/ }, () =>
      putObject(here.double, 'set/_manifest.json', Buffer.from('late')),
    )
    await next.replace('_manifest.json', ['new'])
    expect(await textOf(store, '_manifest.json')).toBe('new')
  })
})

it('a mark of a former owner that arrives late is none', async () => {
  const store = here.open()
  const late = newOwner()
  const own = await store.own(late)
  here.double.cues.before({ operation: ['PutObject', 'CopyObject'], key: /_SUCCESS/ }, async () => {
    const next = await store.own(newOwner())
    await next.takeOver([late])
  })
  expect((await refusal(own.replace('_SUCCESS', []))).kind).toBe('locked')
  expect(await store.size('_SUCCESS')).toBeNull()
})

it('names with every character of folders, above the data set as well, are signed and copied right', async () => {
  const name = 'credentials/query=keyword.a%20b%2F%C3%BC@c._-/import_window=all/part-00000.csv'
  const own = await here.open({ prefix: 'a%20/b=ü c' }).own(newOwner())
  await own.create('_state/sealed/0', ['x'])
  await own.publish('_state/sealed/0', name)
  expect([...here.double.objects(BUCKET).keys()]).toContain(`a%20/b=ü c/${name}`)
  expect(await own.list('credentials')).toEqual(['query=keyword.a%20b%2F%C3%BC@c._-'])
})
