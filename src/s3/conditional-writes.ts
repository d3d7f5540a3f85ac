import { ExportError } from '../core/index.ts'
import { type Bucket, type Condition, Conflict, isUnknownThere } from './requests/index.ts'

/** What no object has. */
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
 * Tries whether a store keeps to conditions: without them two runs would write over each other and never know. Where it
 * does not, the object goes.
 * @param name of an object that is there, and may be written with the same content again
 * @throws ExportError `config` naming the condition that it passes over
 * @throws Conflict when the object was gone: another run has taken over
 */
export async function requireConditions(bucket: Bucket, name: string, content: Uint8Array): Promise<void> {
  const conditions: readonly [header: string, condition: Condition][] = [
    ['If-None-Match', 'absent'],
    ['If-Match', { etag: NO_ETAG }],
  ]
  for (const [header, condition] of conditions) {
    if (await isKept(bucket, name, content, condition)) continue
    // It is there now, whether or not it was: a second try tells a store that does not care from one that had it no more.
    const wasGone = condition === 'absent' && (await isKept(bucket, name, content, condition))
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
    'Write to a store that keeps to conditional writes: AWS S3, MinIO, R2, Ceph and others do, some in their latest versions only.',
  )
}

async function isKept(
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
