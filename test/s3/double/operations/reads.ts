import { S3Error } from '../errors.ts'
import { isEtag, type StoredObject } from '../objects.ts'
import { bucketOf, type Context, keyOf, type S3Response, s3Response } from './operation.ts'
import { checksumHeader } from './puts.ts'

export function getObject(context: Context): S3Response {
  const object = bucketOf(context).object(keyOf(context))
  requireReadConditions(context, object)
  const range = rangeOf(context.request.headers.get('range'), object)
  if (range === null) {
    const { checksum } = object
    const isRequested = checksum !== null && context.request.headers.get('x-amz-checksum-mode') === 'ENABLED'
    return s3Response(
      200,
      { ...headersOf(object), ...(isRequested ? typedChecksum(checksum) : {}) },
      object.bytes,
    )
  }
  const bytes = object.bytes.subarray(range.start, range.end)
  const shown = `bytes ${range.start}-${range.end - 1}/${object.bytes.length}`
  return s3Response(206, { ...headersOf(object), 'content-range': shown }, bytes)
}

/** The same response; the server omits its body. */
export const headObject = getObject

function headersOf({ etag, modifiedMs, headers }: StoredObject): Record<string, string> {
  return {
    ...headers,
    etag,
    'accept-ranges': 'bytes',
    'last-modified': new Date(modifiedMs).toUTCString(),
  }
}

function typedChecksum(checksum: NonNullable<StoredObject['checksum']>): Record<string, string> {
  return {
    ...checksumHeader(checksum),
    'x-amz-checksum-type': checksum.value.includes('-') ? 'COMPOSITE' : 'FULL_OBJECT',
  }
}

function requireReadConditions({ request: { headers } }: Context, { etag }: StoredObject): void {
  const ifMatch = headers.get('if-match')
  if (ifMatch !== undefined && !isEtag(ifMatch, etag))
    throw new S3Error('PreconditionFailed', undefined, { Condition: 'If-Match' })
  const ifNoneMatch = headers.get('if-none-match')
  if (ifNoneMatch !== undefined && isEtag(ifNoneMatch, etag)) throw new S3Error('NotModified')
}

/** @returns null for the whole object, which is also the result of several ranges at once */
function rangeOf(header: string | undefined, { bytes }: StoredObject): { start: number; end: number } | null {
  const parts = /^bytes=(\d*)-(\d*)$/.exec(header ?? '')
  if (parts === null) return null
  const [, from = '', to = ''] = parts
  if (from === '' && to === '') return null
  const start = from === '' ? Math.max(0, bytes.length - Number(to)) : Number(from)
  const end = from === '' || to === '' ? bytes.length : Math.min(bytes.length, Number(to) + 1)
  if (from !== '' && to !== '' && Number(to) < Number(from)) return null
  if (start >= end)
    throw new S3Error('InvalidRange', 'The requested range is not satisfiable', {
      RangeRequested: header!,
      ActualObjectSize: String(bytes.length),
    })
  return { start, end }
}
