import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type DataSetLocation, type ExportError, isExportError, type Store } from '../../src/core/index.ts'
import { s3Store } from '../../src/s3/index.ts'
import { BUCKET, startBucket } from '../support/bucket.ts'
import type { Trouble } from './double/cues.ts'
import type { OperationName } from './double/operations/index.ts'
import type { S3Double } from './double/server.ts'

type BucketLocation = Extract<DataSetLocation, { kind: 's3' }>

let double: S3Double

beforeEach(async () => {
  const started = await startBucket()
  double = started.double
  Object.assign(process.env, started.env)
})

afterEach(() => double.close())

function open(changes: Partial<BucketLocation> = {}): Store {
  return s3Store({
    kind: 's3',
    bucket: BUCKET,
    prefix: 'set',
    endpoint: double.endpoint,
    region: double.region,
    pathStyle: null,
    allowHttp: false,
    stateRoot: null,
    ...changes,
  })
}

async function errorOf(work: Promise<unknown>): Promise<ExportError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!isExportError(error)) throw new Error('not refused', { cause: error })
  return error
}

/** Every kind of operation of a run on a store. @returns the content of the store afterwards */
async function workThrough(store: Store): Promise<Record<string, string>> {
  const own = await store.fenced('_state/open', 'owner')
  await own.writeWhole('_state/checkpoint.jsonl', ['begun;'])
  const journal = await own.openLog('_state/checkpoint.jsonl', 6)
  const part = await own.openLog('_state/open/0.part', 0)
  await part.append([Buffer.from('one,')])
  await part.fsync()
  await journal.append([Buffer.from('page;')])
  await journal.fsync()
  await part.append([LARGE])
  await part.fsync()
  await part.close()
  await own.publish('_state/open/0.part', 'credentials/part-00000.csv')
  const small = await own.openLog('_state/open/1.part', 0)
  await small.append([Buffer.from('small')])
  await small.close()
  await own.publish('_state/open/1.part', 'credentials/part-00001.csv')
  await own.writeWhole('_manifest.json', ['{}'])
  await own.writeWhole('_SUCCESS', [])
  await own.remove('_SUCCESS')
  await journal.append([Buffer.from('end;')])
  await journal.close()
  await own.release()
  const found: Record<string, string> = {}
  for (const path of ['_state/checkpoint.jsonl', '_manifest.json', 'credentials/part-00001.csv']) {
    found[path] = Buffer.from((await store.read(path)) ?? []).toString()
  }
  const large = Buffer.from((await store.read('credentials/part-00000.csv')) ?? [])
  found.large = String(large.equals(Buffer.concat([Buffer.from('one,'), LARGE])))
  found._SUCCESS = String(await store.size('_SUCCESS'))
  found.state = (await store.list('_state')).join()
  return found
}

// More than one part, with an incomplete last one.
const LARGE = randomBytes(9 << 20)

const WORKED = {
  '_state/checkpoint.jsonl': 'begun;page;end;',
  '_manifest.json': '{}',
  'credentials/part-00001.csv': 'small',
  large: 'true',
  _SUCCESS: 'null',
  state: 'checkpoint.jsonl',
}

describe('temporary errors', () => {
  const OPERATIONS: readonly OperationName[] = [
    'PutObject',
    'GetObject',
    'HeadObject',
    'DeleteObject',
    'CopyObject',
    'ListObjectsV2',
    'CreateMultipartUpload',
    'UploadPart',
    'CompleteMultipartUpload',
  ]
  const TROUBLES: readonly (readonly [name: string, trouble: Trouble])[] = [
    ['a store that is too busy', { code: 'SlowDown' }],
    ['a store that fails', { code: 'InternalError' }],
    ['connections that break before a request', { connection: 'reset-before' }],
    ['lost responses', { connection: 'reset-after' }],
  ]

  it.each(TROUBLES)('%s: every request is retried, and has its effect once', async (_, trouble) => {
    for (const operation of OPERATIONS) double.cues.fail({ operation }, { ...trouble, times: 1 })
    expect(await workThrough(open())).toEqual(WORKED)
    expect(double.uploads(BUCKET)).toEqual([])
    expect([...double.objects(BUCKET).keys()].filter((key) => key.includes('open'))).toEqual([])
  })

  it('a store without copies and lists of uploads works', async () => {
    for (const operation of ['CopyObject', 'ListMultipartUploads'] as const) {
      double.cues.fail({ operation }, { code: 'NotImplemented', times: 99 })
    }
    expect(await workThrough(open())).toEqual(WORKED)
    expect(double.uploads(BUCKET)).toEqual([])
  })

  it('bodies that break off are requested again', async () => {
    double.cues.fail({ operation: 'GetObject' }, { connection: 'cut-response', times: 2 })
    expect(await workThrough(open())).toEqual(WORKED)
  })
})

describe('permanent errors', () => {
  it('name the path, the reason and what to do', async () => {
    double.cues.fail({ operation: 'PutObject' }, { code: 'InternalError', times: 99 })
    const error = await errorOf(open().writeWhole('_manifest.json', ['{}']))
    expect(error).toMatchObject({ kind: 'storage', where: '_manifest.json' })
    expect(error.message).toContain('500')
    expect(error.message).toContain('run again')
    expect(double.objects(BUCKET).size).toBe(0)
  })

  it.each([
    ['a bucket that is not there', { bucket: 'nobody' }, 'config', 'no such bucket'],
    ['a server that is not there', { endpoint: 'http://127.0.0.1:9' }, 'storage', 'ECONNREFUSED'],
  ] as const)('name %s', async (_, changes, kind, word) => {
    const error = await errorOf(open(changes).list(''))
    expect(error.kind).toBe(kind)
    expect(error.message).toContain(word)
  })

  it.each([
    ['AWS_ACCESS_KEY_ID', 'access key'],
    ['AWS_SECRET_ACCESS_KEY', 'secret access key'],
  ])('name a wrong %s, without its value', async (variable, word) => {
    process.env[variable] = 'wrong-but-secret-0123456789'
    const error = await errorOf(open().list(''))
    expect(error.kind).toBe('credentials')
    expect(error.message).toContain(word)
    expect(JSON.stringify([error.message, error.stack])).not.toContain('wrong-but-secret')
  })

  it('name a wrong clock', async () => {
    double.clockSkewMs = 3_600_000
    // The SDK adopts the store's time once it knows it.
    expect(await open().list('')).toEqual([])
  })

  it('name a missing permission', async () => {
    double.cues.fail({ operation: 'ListObjectsV2' }, { code: 'AccessDenied', times: 9 })
    const error = await errorOf(open().list(''))
    expect(error.kind).toBe('storage')
    expect(error.message).toContain('s3:ListBucket')
  })
})

describe('a multipart upload', () => {
  it('is invisible until it is complete, and the next owner aborts that of a crashed process', async () => {
    const store = open()
    const own = await store.fenced('_state/open', 'dead')
    const log = await own.openLog('_state/open/0.part', 0)
    await log.append([LARGE])
    await log.append([LARGE])
    await log.close()
    double.cues.fail({ operation: 'CompleteMultipartUpload' }, { code: 'AccessDenied', times: 99 })
    double.cues.fail({ operation: 'AbortMultipartUpload' }, { code: 'AccessDenied', times: 1 })
    await errorOf(own.publish('_state/open/0.part', 'credentials/part-00000.csv'))
    expect(double.uploads(BUCKET)).toHaveLength(1)
    expect(await store.size('credentials/part-00000.csv')).toBeNull()
    double.cues.clear()

    const next = await store.fenced('_state/open', 'next')
    await next.takeOver('dead', false)
    await next.settle()
    expect(double.uploads(BUCKET)).toEqual([])
    await next.publish('_state/open/0.part', 'credentials/part-00000.csv')
    expect(await store.size('credentials/part-00000.csv')).toBe(2 * LARGE.byteLength)
  })

  it('is rejected for a former owner after it was aborted', async () => {
    const store = open()
    const own = await store.fenced('_state/open', 'late')
    const log = await own.openLog('_state/open/0.part', 0)
    await log.append([LARGE])
    await log.append([LARGE])
    await log.close()
    double.cues.before({ operation: 'CompleteMultipartUpload' }, async () => {
      const next = await store.fenced('_state/open', 'next')
      await next.takeOver('late', true)
      await next.settle()
    })
    const error = await errorOf(own.publish('_state/open/0.part', 'credentials/part-00000.csv'))
    expect(error.kind).toBe('locked')
    expect(await store.size('credentials/part-00000.csv')).toBeNull()
  })
})

it('a log with hundreds of flushes is read in few requests by the next owner', async () => {
  const store = open()
  const own = await store.fenced('_state/open', 'owner')
  await own.writeWhole('_state/checkpoint.jsonl', ['0;'])
  const log = await own.openLog('_state/checkpoint.jsonl', 2)
  let expected = '0;'
  for (let line = 1; line <= 300; line++) {
    await log.append([Buffer.from(`${line};`)])
    await log.fsync()
    expected += `${line};`
  }
  await log.close()
  expect(Buffer.from((await store.read('_state/checkpoint.jsonl'))!).toString()).toBe(expected)
  await (await own.openLog('_state/checkpoint.jsonl', expected.length)).close()
  const before = double.log.length
  expect(Buffer.from((await store.read('_state/checkpoint.jsonl'))!).toString()).toBe(expected)
  expect(double.log.length - before).toBeLessThanOrEqual(5)
  expect(double.objects(BUCKET).size).toBeLessThanOrEqual(3)
})

it('names with every character of query folders are signed and copied right', async () => {
  const name = 'credentials/query=keyword.a%20b%2F%C3%BC@c._-/import_window=all/part-00000.csv'
  const own = await open({ prefix: 'a/b=c' }).fenced('_state/open', 'owner')
  const log = await own.openLog('_state/open/0.part', 0)
  await log.append([Buffer.from('x')])
  await log.close()
  await own.publish('_state/open/0.part', name)
  expect([...double.objects(BUCKET).keys()]).toContain(`a/b=c/${name}`)
  expect(await own.list('credentials')).toEqual(['query=keyword.a%20b%2F%C3%BC@c._-'])
})
