import { ExportError } from '../core/index.ts'
import { type Bucket, type Condition, Conflict, isUnknownThere } from './requests/index.ts'

/** An ETag that no object has. */
const NO_ETAG = '"00000000000000000000000000000000"'

/**
 * Writes an object that is not there yet, the first of a data set.
 * @returns its ETag
 * @throws ExportError `config` when the store refuses every condition
 */
export async function putFirst(bucket: Bucket, name: string, content: Uint8Array): Promise<string> {
  try {
    return await bucket.put(name, content, { condition: 'absent' })
  } catch (error) {
    throw isUnknownThere(error) ? unfit(bucket, 'does not know If-None-Match') : error
  }
}

/**
 * Tests whether a store honours conditional writes. Without them two runs would overwrite each other's files unnoticed. If
 * it does not, the object is removed.
 * @param name of an object that exists, and may be written with the same content again
 * @throws ExportError `config` naming the condition that the store ignores
 * @throws Conflict when the object was gone: another run has taken over
 */
export async function requireConditions(bucket: Bucket, name: string, content: Uint8Array): Promise<void> {
  const conditions: readonly [header: string, condition: Condition][] = [
    ['If-None-Match', 'absent'],
    ['If-Match', { etag: NO_ETAG }],
  ]
  for (const [header, condition] of conditions) {
    if (await isHonoured(bucket, name, content, condition)) continue
    // The object exists now in any case. So a second try tells a store that ignores the condition from one in which the
    // object was gone.
    const wasGone = condition === 'absent' && (await isHonoured(bucket, name, content, condition))
    await bucket.remove(name)
    if (wasGone) throw new Conflict()
    throw unfit(bucket, `ignores ${header}`)
  }
}

function unfit(bucket: Bucket, what: string): ExportError {
  return new ExportError(
    'config',
    `The store ${what}, so two runs could write over each other without knowing`,
    bucket.address,
    'Write to a store that honours conditional writes: AWS S3, MinIO, R2, Ceph and others do, some in their latest versions only.',
  )
}

async function isHonoured(
  bucket: Bucket,
  name: string,
  content: Uint8Array,
  condition: Condition,
): Promise<boolean> {
  try {
    await bucket.put(name, content, { condition })
    return false
  } catch (error) {
    if (error instanceof Conflict) return true
    throw error
  }
}
