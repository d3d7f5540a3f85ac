import { verifyChecksums } from '../checksums.ts'
import { S3Error } from '../errors.ts'
import { plainEtag } from '../objects.ts'
import {
  bucketOf,
  type Context,
  conditionOf,
  keyOf,
  type S3Response,
  s3Response,
  storedHeaders,
} from './operation.ts'

export async function putObject(context: Context): Promise<S3Response> {
  const { body, nowMs, pause, request } = context
  const bucket = bucketOf(context)
  const key = keyOf(context)
  const condition = conditionOf(context)
  requireLength(context)
  const checksum = verifyChecksums(request.headers, body)
  const etag = plainEtag(body)
  const object = { key, bytes: body, etag, modifiedMs: nowMs, headers: storedHeaders(context), checksum }
  await bucket.change(key, condition, pause, object)
  return s3Response(200, { etag, ...checksumHeader(checksum) })
}

/** @throws S3Error when the size is not announced, or exceeds the limit of one request */
export function requireLength({ request, body, limits }: Context): void {
  if (!request.headers.has('content-length')) throw new S3Error('MissingContentLength')
  if (body.length > limits.maxRequestBytes)
    throw new S3Error('EntityTooLarge', 'The upload exceeds the maximum allowed size.')
}

export function checksumHeader(
  checksum: { readonly algorithm: string; readonly value: string } | null,
): Record<string, string> {
  return checksum === null ? {} : { [`x-amz-checksum-${checksum.algorithm.toLowerCase()}`]: checksum.value }
}
