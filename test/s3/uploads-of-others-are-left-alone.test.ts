import { CreateMultipartUploadCommand, S3Client } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { DataSetLocation, FencedStore, Store } from '../../src/core/index.ts'
import { s3Store, splitStore } from '../../src/s3/index.ts'
import { temporaryStore } from '../disk/temporary-store.ts'
import { newOwner, takeOverAll } from '../store/conformance/world.ts'
import { BUCKET, startBucket } from '../support/bucket.ts'
import type { S3Double } from './double/server.ts'

const LARGE = Buffer.alloc(9 << 20)
const SHARD = 'credentials/part-00000.csv'
/** Uploads of other tools in a bucket that contains more than a data set; the last one under our own name. */
const OTHERS = ['_backup/dump', 'credentials/old.zip', 'reports/2023.pdf', '_state/x', SHARD]

let double: S3Double

beforeEach(async () => {
  const started = await startBucket()
  double = started.double
  for (const [name, value] of Object.entries(started.env)) vi.stubEnv(name, value)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await double.close()
})

/** @returns their ids */
async function beginOthers(keys: readonly string[] = OTHERS): Promise<string[]> {
  const [credentials] = double.credentials
  const s3 = new S3Client({
    endpoint: double.endpoint,
    region: double.region,
    forcePathStyle: true,
    credentials: credentials!,
  })
  const ids: string[] = []
  for (const Key of keys) {
    const { UploadId = '' } = await s3.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key }))
    ids.push(UploadId)
  }
  s3.destroy()
  return ids
}

const uploadIds = (): readonly string[] => double.uploads(BUCKET).map(({ id }) => id)

/** The bucket itself is the data set. */
function stores(): readonly [name: string, open: () => Store][] {
  const location: Extract<DataSetLocation, { kind: 's3' }> = {
    kind: 's3',
    bucket: BUCKET,
    prefix: '',
    endpoint: double.endpoint,
    region: double.region,
    pathStyle: true,
    allowHttp: false,
    stateRoot: null,
  }
  const { store, root } = temporaryStore()
  return [
    ['in the bucket', () => s3Store(location)],
    ['on a disk', () => splitStore(location, store, root)],
  ]
}

async function writeShard(own: FencedStore): Promise<void> {
  const log = await own.openLog('_state/open/0.part', 0)
  await log.append([LARGE])
  await log.append([LARGE])
  await log.close()
  await own.publish('_state/open/0.part', SHARD)
}

it.each([0, 1])(
  'uploads of others stay when uploads of a crashed owner are aborted, whatever their names (%i)',
  async (which) => {
    const open = stores()[which]![1]
    const others = await beginOthers()
    const [dead, next] = [newOwner(), newOwner()]
    const own = await open().fenced('_state/open', dead)
    await takeOverAll(own, dead, false)
    // It crashes before it has sent a part.
    double.cues.fail({ operation: 'UploadPart', key: SHARD }, { code: 'AccessDenied', times: 9 })
    double.cues.fail({ operation: 'AbortMultipartUpload' }, { code: 'AccessDenied', times: 1 })
    await expect(writeShard(own)).rejects.toThrow()
    double.cues.clear()
    const left = uploadIds().filter((id) => !others.includes(id))
    expect(left).toHaveLength(1)
    const later = await beginOthers(['credentials/later.zip'])

    const successor = await open().fenced('_state/open', next)
    await takeOverAll(successor, next, true)
    expect(uploadIds()).toEqual([...others, ...later])
    await writeShard(successor)
    await successor.release()
    expect(uploadIds()).toEqual([...others, ...later])
  },
)

it.each([0, 1])(
  'uploads of others stay, and an upload whose id was lost is aborted by its owner (%i)',
  async (which) => {
    const open = stores()[which]![1]
    const others = await beginOthers()
    const id = newOwner()
    const own = await open().fenced('_state/open', id)
    await takeOverAll(own, id, false)
    double.cues.fail({ operation: 'CreateMultipartUpload', key: SHARD }, { connection: 'reset-after' })
    await writeShard(own)
    expect(uploadIds()).toHaveLength(others.length + 1)
    await own.release()
    expect(uploadIds()).toEqual(others)
  },
)

it('concurrent uploads are recorded together', async () => {
  const id = newOwner()
  const own = await stores()[0]![1]().fenced('_state/open', id)
  const before = double.requests({ operation: 'PutObject', key: /\.owner$/ }).length
  await Promise.all(Array.from({ length: 8 }, (_, i) => own.writeWhole(`_large-${i}`, [LARGE])))
  const marks = double.requests({ operation: 'PutObject', key: /\.owner$/ }).length - before
  expect(marks).toBeLessThan(8)
  await own.requireLock()
  await own.release()
  expect(uploadIds()).toEqual([])
})
