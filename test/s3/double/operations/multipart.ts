import { S3Error } from '../errors.ts'
import { isEtag, multipartEtag, type Part, plainEtag, type Upload } from '../objects.ts'
import { parameter } from '../request.ts'
import { elements } from '../xml.ts'
import {
  bucketOf,
  type Context,
  conditionOf,
  keyOf,
  type S3Response,
  s3Response,
  storedHeaders,
  xmlResponse,
} from './operation.ts'

export function createUpload(context: Context): S3Response {
  const bucket = bucketOf(context)
  const key = keyOf(context)
  const { id } = bucket.begin(key, context.nowMs, storedHeaders(context))
  return xmlResponse(
    'InitiateMultipartUploadResult',
    elements({ Bucket: bucket.name, Key: key, UploadId: id }),
  )
}

export function uploadPart(context: Context): S3Response {
  const number = Number(parameter(context.request, 'partNumber'))
  if (!Number.isInteger(number) || number < 1 || number > 10_000) throw new S3Error('InvalidArgument')
  const etag = plainEtag(context.body)
  uploadOf(context).parts.set(number, { number, bytes: context.body, etag })
  return s3Response(200, { etag })
}

export function completeUpload(context: Context): S3Response {
  const bucket = bucketOf(context)
  const upload = uploadOf(context)
  const named = [...context.body.toString().matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part]) => part!)
  const parts = partsOf(upload, named)
  const { key, headers } = upload
  const etag = multipartEtag(parts)
  const bytes = Buffer.concat(parts.map((part) => part.bytes))
  bucket.change(key, conditionOf(context), { key, bytes, etag, modifiedMs: context.nowMs, headers })
  bucket.uploads.delete(upload.id)
  return xmlResponse(
    'CompleteMultipartUploadResult',
    elements({ Location: `/${bucket.name}/${key}`, Bucket: bucket.name, Key: key, ETag: etag }),
  )
}

export function abortUpload(context: Context): S3Response {
  bucketOf(context).uploads.delete(uploadOf(context).id)
  return s3Response(204)
}

function uploadOf(context: Context): Upload {
  return bucketOf(context).upload(parameter(context.request, 'uploadId') ?? '', keyOf(context))
}

/** Of every part but the last. Source: Amazon S3 user guide, "Amazon S3 multipart upload limits". */
const MIN_PART_BYTES = 5 << 20

function partsOf(upload: Upload, named: readonly string[]): Part[] {
  if (named.length === 0) throw new S3Error('MalformedXML')
  const numbers = named.map((part) => Number(/<PartNumber>(\d+)</.exec(part)?.[1]))
  if (numbers.some((number, index) => index > 0 && number <= numbers[index - 1]!))
    throw new S3Error('InvalidPartOrder')
  const parts = named.map((node, index) => {
    const part = upload.parts.get(numbers[index]!)
    const etag = /<ETag>(?:&quot;|"|&#34;)?(\w[\w-]*)/.exec(node)?.[1]
    if (part === undefined || etag === undefined || !isEtag(etag, part.etag)) throw new S3Error('InvalidPart')
    return part
  })
  if (parts.slice(0, -1).some(({ bytes }) => bytes.length < MIN_PART_BYTES))
    throw new S3Error('EntityTooSmall')
  return parts
}
