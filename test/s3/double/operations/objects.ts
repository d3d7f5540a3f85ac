import { S3Error } from '../errors.ts'
import { isEtag, plainEtag, type StoredObject } from '../objects.ts'
import { decoded } from '../request.ts'
import { elements } from '../xml.ts'
import {
  bucketNamed,
  bucketOf,
  type Context,
  conditionOf,
  isoTime,
  keyOf,
  type S3Response,
  s3Response,
  storedHeaders,
  xmlResponse,
} from './operation.ts'

export function putObject(context: Context): S3Response {
  const { body, nowMs } = context
  const key = keyOf(context)
  const etag = plainEtag(body)
  const object = { key, bytes: body, etag, modifiedMs: nowMs, headers: storedHeaders(context) }
  bucketOf(context).change(key, conditionOf(context), object)
  return s3Response(200, { etag })
}

/** For `HeadObject` it is the same response; the server omits its body. */
export function getObject(context: Context): S3Response {
  const { headers } = context.request
  const object = bucketOf(context).object(keyOf(context))
  const { etag, bytes, modifiedMs } = object
  const ifMatch = headers.get('if-match')
  if (ifMatch !== undefined && !isEtag(ifMatch, etag)) throw new S3Error('PreconditionFailed')
  const known = {
    ...object.headers,
    etag,
    'accept-ranges': 'bytes',
    'last-modified': new Date(modifiedMs).toUTCString(),
  }
  const range = rangeOf(headers.get('range'), object)
  if (range === null) return s3Response(200, known, bytes)
  const shown = `bytes ${range.start}-${range.end - 1}/${bytes.length}`
  return s3Response(206, { ...known, 'content-range': shown }, bytes.subarray(range.start, range.end))
}

/** A missing object counts as deleted; only with a condition it is an error. */
export function deleteObject(context: Context): S3Response {
  bucketOf(context).change(keyOf(context), conditionOf(context), null)
  return s3Response(204)
}

export function copyObject(context: Context): S3Response {
  const { request, nowMs, buckets } = context
  const key = keyOf(context)
  const [, bucket = '', name = ''] =
    /^\/?([^/]+)\/(.+)$/s.exec(decoded(request.headers.get('x-amz-copy-source') ?? '')) ?? []
  const copied = bucketNamed(buckets, bucket).object(name)
  if (bucket === request.bucket && name === key) throw new S3Error('InvalidRequest')
  // An object that was uploaded in parts is one part from here on, with the tag of one.
  const etag = plainEtag(copied.bytes)
  bucketOf(context).change(key, conditionOf(context), { ...copied, key, etag, modifiedMs: nowMs })
  return xmlResponse('CopyObjectResult', elements({ LastModified: isoTime(nowMs), ETag: etag }))
}

/** @returns null for the whole object, which is also the result of several ranges at once */
function rangeOf(header: string | undefined, { bytes }: StoredObject): { start: number; end: number } | null {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? []
  if (from === '' && to === '') return null
  const start = from === '' ? Math.max(0, bytes.length - Number(to)) : Number(from)
  const end = from === '' || to === '' ? bytes.length : Math.min(bytes.length, Number(to) + 1)
  if (start >= end) throw new S3Error('InvalidRange')
  return { start, end }
}
