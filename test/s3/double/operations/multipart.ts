import { algorithmOf, type Checksum, checksumOf, compositeChecksum, verifyChecksums } from '../checksums.ts'
import { S3Error } from '../errors.ts'
import { isEtag, multipartEtag, type Part, plainEtag, type Upload } from '../objects.ts'
import { parameter } from '../request.ts'
import { elements, type Node, textOf } from '../xml.ts'
import {
  bucketOf,
  type Context,
  conditionOf,
  keyOf,
  type S3Response,
  s3Response,
  storedHeaders,
  xmlBody,
  xmlResponse,
} from './operation.ts'
import { checksumHeader, requireLength } from './puts.ts'

export function createMultipartUpload(context: Context): S3Response {
  const { headers } = context.request
  const bucket = bucketOf(context)
  const key = keyOf(context)
  const named = headers.get('x-amz-checksum-algorithm')
  if ((headers.get('x-amz-checksum-type') ?? 'COMPOSITE') !== 'COMPOSITE') throw new S3Error('NotImplemented')
  const algorithm = named === undefined ? null : algorithmOf(named)
  const { id } = bucket.begin(key, context.nowMs, storedHeaders(context), algorithm)
  const result = xmlResponse(
    'InitiateMultipartUploadResult',
    elements({ Bucket: bucket.name, Key: key, UploadId: id }),
  )
  return {
    ...result,
    headers: { ...result.headers, ...(algorithm === null ? {} : { 'x-amz-checksum-algorithm': algorithm }) },
  }
}

export function uploadPart(context: Context): S3Response {
  requireLength(context)
  const checksum = verifyChecksums(context.request.headers, context.body)
  const part = storePart(context, context.body, checksum)
  return s3Response(200, { etag: part.etag, ...checksumHeader(part.checksum) })
}

/** @param stated the checksum in the headers of the part, if any */
export function storePart(context: Context, bytes: Buffer, stated: Checksum | null): Part {
  const { request, limits, nowMs } = context
  const number = Number(parameter(request, 'partNumber'))
  if (!Number.isInteger(number) || number < 1 || number > limits.maxParts)
    throw new S3Error('InvalidArgument', `Part number must be between 1 and ${limits.maxParts}`)
  const upload = uploadOf(context)
  const { algorithm } = upload
  if (stated !== null && algorithm !== null && stated.algorithm !== algorithm)
    throw new S3Error(
      'InvalidRequest',
      `The upload expects ${algorithm}, and the part came with ${stated.algorithm}.`,
    )
  const checksum = stated ?? (algorithm === null ? null : checksumOf(algorithm, bytes))
  const part = { number, bytes, etag: plainEtag(bytes), modifiedMs: nowMs, checksum }
  upload.parts.set(number, part)
  return part
}

export async function completeMultipartUpload(context: Context): Promise<S3Response> {
  const { pause, nowMs } = context
  const bucket = bucketOf(context)
  const condition = conditionOf(context)
  const upload = uploadOf(context)
  const named = xmlBody(context, 'CompleteMultipartUpload').children.filter(({ name }) => name === 'Part')
  const parts = partsOf(upload, named, context.limits.minPartBytes)
  const { key, headers, algorithm } = upload
  const checksum =
    algorithm === null
      ? null
      : compositeChecksum(
          algorithm,
          parts.map((part) => part.checksum!),
        )
  const etag = multipartEtag(parts)
  const bytes = Buffer.concat(parts.map((part) => part.bytes))
  // An abort that comes meanwhile takes precedence.
  const pauseInIt = () => pause()?.then(() => void uploadOf(context)) ?? null
  await bucket.change(key, condition, pauseInIt, { key, bytes, etag, modifiedMs: nowMs, headers, checksum })
  bucket.uploads.delete(upload.id)
  return xmlResponse(
    'CompleteMultipartUploadResult',
    elements({
      Location: `/${bucket.name}/${key}`,
      Bucket: bucket.name,
      Key: key,
      ETag: etag,
      ...(checksum === null ? {} : { [`Checksum${checksum.algorithm}`]: checksum.value }),
    }),
  )
}

export function abortMultipartUpload(context: Context): S3Response {
  bucketOf(context).uploads.delete(uploadOf(context).id)
  return s3Response(204)
}

export function uploadOf(context: Context): Upload {
  return bucketOf(context).upload(parameter(context.request, 'uploadId') ?? '', keyOf(context))
}

function partsOf(upload: Upload, named: readonly Node[], minPartBytes: number): Part[] {
  if (named.length === 0) throw new S3Error('MalformedXML')
  const numbers = named.map((part) => Number(textOf(part, 'PartNumber')))
  if (numbers.some((number, index) => index > 0 && number <= numbers[index - 1]!))
    throw new S3Error('InvalidPartOrder')
  const parts = named.map((node, index) => {
    const number = numbers[index]!
    const part = upload.parts.get(number)
    const etag = textOf(node, 'ETag')
    if (part === undefined || etag === null || etag === '*' || !isEtag(etag, part.etag))
      throw new S3Error('InvalidPart', undefined, { PartNumber: String(number) })
    requireChecksum(upload, part, node)
    return part
  })
  const small = parts.slice(0, -1).find(({ bytes }) => bytes.length < minPartBytes)
  if (small !== undefined)
    throw new S3Error('EntityTooSmall', undefined, {
      PartNumber: String(small.number),
      ProposedSize: String(small.bytes.length),
      MinSizeAllowed: String(minPartBytes),
    })
  return parts
}

/** An upload that began with a checksum requires that of each part again at its completion. */
function requireChecksum({ algorithm }: Upload, part: Part, node: Node): void {
  if (algorithm === null) return
  const stated = textOf(node, `Checksum${algorithm}`)
  if (stated === null)
    throw new S3Error('InvalidRequest', `The ${algorithm} of part ${part.number} is missing in the request.`)
  if (stated !== part.checksum?.value) throw new S3Error('InvalidPart')
}
