import { S3Error } from '../errors.ts'
import { inOrder, type Upload } from '../objects.ts'
import { numberParameter, parameter } from '../request.ts'
import { encoded } from '../signature.ts'
import { element, elements } from '../xml.ts'
import { bucketOf, type Context, isoTime, type S3Response, xmlResponse } from './operation.ts'

/** A key, or a prefix that stands for all keys that begin with it. */
type Name = { readonly key: string; readonly isPrefix: boolean }

export function listObjects(context: Context): S3Response {
  const { request, page } = context
  const bucket = bucketOf(context)
  const prefix = parameter(request, 'prefix') ?? ''
  const delimiter = parameter(request, 'delimiter') ?? ''
  const startAfter = parameter(request, 'start-after')
  const token = parameter(request, 'continuation-token')
  const show = encodingOf(context)
  const max = Math.min(page, numberParameter(request, 'max-keys', 1000))

  if (parameter(request, 'list-type') !== '2') throw new S3Error('NotImplemented')

  const behind: Name = token === null ? { key: startAfter ?? '', isPrefix: false } : fromToken(token)
  const names: Name[] = []
  let isTruncated = false
  for (const key of bucket.keys.slice(firstBehind(bucket.keys, behind.key, prefix))) {
    if (!key.startsWith(prefix)) break
    // A prefix in a response stands for all keys that begin with it.
    if (behind.isPrefix && key.startsWith(behind.key)) continue
    const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    const name = end < 0 ? key : key.slice(0, end + delimiter.length)
    if (end >= 0 && names.at(-1)?.key === name) continue
    if (names.length === max) {
      isTruncated = max > 0
      break
    }
    names.push({ key: name, isPrefix: end >= 0 })
  }
  return xmlResponse('ListBucketResult', [
    ...elements({
      Name: bucket.name,
      Prefix: show(prefix),
      Delimiter: delimiter === '' ? undefined : show(delimiter),
      StartAfter: startAfter === null ? undefined : show(startAfter),
      ContinuationToken: token ?? undefined,
      NextContinuationToken: isTruncated ? toToken(names.at(-1)!) : undefined,
      EncodingType: parameter(request, 'encoding-type') ?? undefined,
      MaxKeys: max,
      KeyCount: names.length,
      IsTruncated: isTruncated,
    }),
    ...names
      .filter(({ isPrefix }) => !isPrefix)
      .map(({ key }) => {
        const { etag, bytes, modifiedMs } = bucket.object(key)
        const fields = { Key: show(key), LastModified: isoTime(modifiedMs), ETag: etag, Size: bytes.length }
        return element('Contents', elements({ ...fields, StorageClass: 'STANDARD' }))
      }),
    ...names
      .filter(({ isPrefix }) => isPrefix)
      .map(({ key }) => element('CommonPrefixes', elements({ Prefix: show(key) }))),
  ])
}

export function listUploads(context: Context): S3Response {
  const { request } = context
  const bucket = bucketOf(context)
  const prefix = parameter(request, 'prefix') ?? ''
  const keyMarker = parameter(request, 'key-marker') ?? ''
  const idMarker = parameter(request, 'upload-id-marker') ?? ''
  const max = Math.min(context.page, numberParameter(request, 'max-uploads', 1000))
  const uploads = inOrderOfKeys([...bucket.uploads.values()])
  const marked = uploads.findIndex(({ key, id }) => key === keyMarker && id === idMarker)
  const rest = uploads
    .slice(marked + 1)
    .filter(({ key }) => key.startsWith(prefix) && (marked >= 0 || isBehind(key, keyMarker)))
  const page = rest.slice(0, max)
  const isTruncated = rest.length > page.length
  return xmlResponse('ListMultipartUploadsResult', [
    ...elements({
      Bucket: bucket.name,
      KeyMarker: keyMarker,
      UploadIdMarker: idMarker,
      NextKeyMarker: isTruncated ? page.at(-1)!.key : undefined,
      NextUploadIdMarker: isTruncated ? page.at(-1)!.id : undefined,
      MaxUploads: max,
      IsTruncated: isTruncated,
    }),
    ...page.map(({ key, id, initiatedMs }) =>
      element('Upload', elements({ Key: key, UploadId: id, Initiated: isoTime(initiatedMs) })),
    ),
  ])
}

/** XML cannot contain every key unescaped. */
function encodingOf({ request }: Context): (text: string) => string {
  const type = parameter(request, 'encoding-type')
  if (type === null) return (text) => text
  if (type !== 'url') throw new S3Error('InvalidArgument')
  return (text) => text.split('/').map(encoded).join('/')
}

/** The index of the first key that comes after a name and has a prefix. */
function firstBehind(keys: readonly string[], name: string, prefix: string): number {
  let [low, high] = [0, keys.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const key = keys[middle]!
    if (isBehind(key, name) && !isBehind(prefix, key)) high = middle
    else low = middle + 1
  }
  return low
}

function isBehind(key: string, name: string): boolean {
  return Buffer.compare(Buffer.from(key), Buffer.from(name)) > 0
}

function inOrderOfKeys(uploads: readonly Upload[]): Upload[] {
  return inOrder(new Set(uploads.map(({ key }) => key))).flatMap((key) =>
    uploads
      .filter((upload) => upload.key === key)
      .sort((a, b) => a.initiatedMs - b.initiatedMs || (a.id < b.id ? -1 : 1)),
  )
}

// Opaque to clients: one that builds tokens, or uses keys as tokens, gets an error.
function toToken({ key, isPrefix }: Name): string {
  return Buffer.from(`${isPrefix ? 'prefix' : 'key'}:${key}`).toString('base64')
}

function fromToken(token: string): Name {
  const parts = /^(prefix|key):(.*)$/s.exec(Buffer.from(token, 'base64').toString())
  const name = { key: parts?.[2] ?? '', isPrefix: parts?.[1] === 'prefix' }
  if (toToken(name) !== token) throw new S3Error('InvalidArgument')
  return name
}
