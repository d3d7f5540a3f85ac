import { CreateMultipartUploadCommand } from '@aws-sdk/client-s3'
import { expect, it } from 'vitest'
import type { OwnedStore } from '../../src/core/index.ts'
import { newOwner } from '../disk/temporary-store.ts'
import { BUCKET } from '../support/bucket.ts'
import { pieces } from '../support/pieces.ts'
import { eachInABucket } from './each-in-a-bucket.ts'

const LARGE = Buffer.alloc(9 << 20)
const SHARD = 'credentials/part-00000.csv'
const SEALED = '_state/sealed/0'
/** Uploads of other tools in a bucket that contains more than a data set; the last one under a name of a shard. */
const OTHERS = ['_backup/dump', 'credentials/old.zip', 'reports/2023.pdf', '_state/x', SHARD]

const here = eachInABucket()

/** @returns their ids */
async function beginOthers(keys: readonly string[] = OTHERS): Promise<string[]> {
  const s3 = here.client()
  const ids: string[] = []
  for (const Key of keys) {
    const { UploadId = '' } = await s3.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key }))
    ids.push(UploadId)
  }
  return ids
}

const uploadIds = (): readonly string[] => here.double.uploads(BUCKET).map(({ id }) => id)

/** The bucket itself is the data set. */
const open = () => here.open({ prefix: '' })

async function writeShard(own: OwnedStore): Promise<void> {
  await own.build(pieces([LARGE, LARGE]), () => SEALED)
  await own.publish(SEALED, SHARD)
}

it('uploads of others stay when uploads of a crashed owner are aborted, whatever their names', async () => {
  const others = await beginOthers()
  const [dead, next] = [newOwner(), newOwner()]
  const own = await open().own(dead)
  await own.takeOver([])
  // It crashes before it has sent a part.
  here.double.cues.fail({ operation: 'UploadPart' }, { code: 'AccessDenied', times: 9 })
  here.double.cues.fail({ operation: 'AbortMultipartUpload' }, { code: 'AccessDenied', times: 1 })
  await expect(writeShard(own)).rejects.toThrow()
  here.double.cues.clear()
  const left = uploadIds().filter((id) => !others.includes(id))
  expect(left).toHaveLength(1)
  const later = await beginOthers(['credentials/later.zip'])

  const successor = await open().own(next)
  await successor.takeOver([dead])
  expect(uploadIds()).toEqual([...others, ...later])
  await writeShard(successor)
  await successor.release()
  expect(uploadIds()).toEqual([...others, ...later])
})

it('an upload that fails is aborted', async () => {
  here.double.cues.fail({ operation: 'UploadPart' }, { code: 'AccessDenied', times: 9 })
  await expect(writeShard(await open().own(newOwner()))).rejects.toThrow()
  expect(uploadIds()).toEqual([])
})

it('an owner that ends aborts nothing: what has begun meanwhile is of the next one', async () => {
  const own = await open().own(newOwner())
  await own.takeOver([])
  await writeShard(own)
  const others = await beginOthers(['_state/sealed/1', '_state/log/0000000000000002'])
  await own.release()
  expect(uploadIds()).toEqual(others)
})

it('an owner that is taken over while it lists uploads aborts none of them', async () => {
  const [dead, late] = [newOwner(), newOwner()]
  await open().own(dead)
  const own = await open().own(late)
  let others: readonly string[] = []
  here.double.cues.before({ operation: 'ListMultipartUploads' }, async () => {
    const next = await open().own(newOwner())
    await next.takeOver([dead, late])
    others = await beginOthers(['_state/sealed/1'])
  })
  await expect(own.takeOver([dead])).rejects.toMatchObject({ kind: 'locked' })
  expect(uploadIds()).toEqual(others)
})
