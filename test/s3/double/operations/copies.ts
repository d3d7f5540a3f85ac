import { algorithmOf, type Checksum, checksumOf } from '../checksums.ts'
import { S3Error } from '../errors.ts'
import { isEtag, plainEtag, type StoredObject } from '../objects.ts'
import { decoded } from '../request.ts'
import { elements } from '../xml.ts'
import { storePart } from './multipart.ts'
import {
  bucketNamed,
  bucketOf,
  type Context,
  conditionOf,
  isoTime,
  keyOf,
  type S3Response,
  storedHeaders,
  xmlResponse,
} from './operation.ts'

export async function copyObject(context: Context): Promise<S3Response> {
  const { request, nowMs, pause, limits } = context
  const bucket = bucketOf(context)
  const key = keyOf(context)
  const condition = conditionOf(context)
  const [from, source] = sourceOf(context)
  const directive = request.headers.get('x-amz-metadata-directive') ?? 'COPY'
  if (directive !== 'COPY' && directive !== 'REPLACE')
    throw new S3Error('InvalidArgument', 'Unknown metadata directive.')
  if (directive === 'COPY' && from === bucket.name && source.key === key)
    throw new S3Error('InvalidRequest', 'An object cannot be copied to itself without a change of anything.')
  if (source.bytes.length > limits.maxRequestBytes)
    throw new S3Error('InvalidRequest', 'The copy source is larger than what can be copied at once.')
  const headers = directive === 'COPY' ? source.headers : storedHeaders(context)
  const algorithm = request.headers.get('x-amz-checksum-algorithm') ?? source.checksum?.algorithm
  const checksum = algorithm === undefined ? null : checksumOf(algorithmOf(algorithm), source.bytes)
  // An object that was uploaded in parts is one part from here on, with the tag of one.
  const etag = plainEtag(source.bytes)
  const object = { key, bytes: source.bytes, etag, modifiedMs: nowMs, headers, checksum }
  await bucket.change(key, condition, pause, object)
  return xmlResponse('CopyObjectResult', copied(etag, nowMs, checksum))
}

export function uploadPartCopy(context: Context): S3Response {
  const [, source] = sourceOf(context)
  const bytes = rangeOf(context, source)
  const { etag, checksum } = storePart(context, bytes, null)
  return xmlResponse('CopyPartResult', copied(etag, context.nowMs, checksum))
}

function copied(etag: string, nowMs: number, checksum: Checksum | null) {
  return elements({
    LastModified: isoTime(nowMs),
    ETag: etag,
    ...(checksum === null ? {} : { [`Checksum${checksum.algorithm}`]: checksum.value }),
  })
}

/** The bucket and the object to copy, if they meet the conditions of the request. */
function sourceOf({ request: { headers }, buckets }: Context): [bucket: string, object: StoredObject] {
  const named = headers.get('x-amz-copy-source') ?? ''
  if (named.includes('?')) throw new S3Error('NotImplemented', 'Versions are not implemented.')
  const parts = /^\/?([^/]+)\/(.+)$/s.exec(decoded(named))
  if (parts === null) throw new S3Error('InvalidArgument', 'The copy source must name a bucket and a key.')
  const [, bucket = '', key = ''] = parts
  const object = bucketNamed(buckets, bucket).object(key)
  const ifMatch = headers.get('x-amz-copy-source-if-match')
  const ifNoneMatch = headers.get('x-amz-copy-source-if-none-match')
  if (
    (ifMatch !== undefined && !isEtag(ifMatch, object.etag)) ||
    (ifNoneMatch !== undefined && isEtag(ifNoneMatch, object.etag))
  )
    throw new S3Error('PreconditionFailed')
  return [bucket, object]
}

function rangeOf({ request: { headers }, limits }: Context, { bytes }: StoredObject): Buffer {
  const header = headers.get('x-amz-copy-source-range')
  if (header === undefined) return bytes
  const parts = /^bytes=(\d+)-(\d+)$/.exec(header)
  if (parts === null || Number(parts[1]) > Number(parts[2]))
    throw new S3Error('InvalidArgument', 'x-amz-copy-source-range must be of the form bytes=first-last')
  // Source: Amazon S3 API reference, UploadPartCopy: ranges are for sources of more than 5 MB.
  if (bytes.length <= limits.minPartBytes)
    throw new S3Error('InvalidRequest', 'The copy source is too small to be copied in ranges.')
  const [first, last] = [Number(parts[1]), Number(parts[2])]
  if (last >= bytes.length)
    throw new S3Error(
      'InvalidArgument',
      `Range specified is not valid for source object of size: ${bytes.length}`,
    )
  return bytes.subarray(first, last + 1)
}
