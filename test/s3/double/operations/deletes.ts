import { verifyChecksums } from '../checksums.ts'
import { S3Error } from '../errors.ts'
import { element, elements, textOf, type Xml } from '../xml.ts'
import {
  bucketOf,
  type Context,
  conditionOf,
  keyOf,
  type S3Response,
  s3Response,
  xmlBody,
  xmlResponse,
} from './operation.ts'

// Source: Amazon S3 API reference, DeleteObjects.
const MAX_KEYS = 1000

/** A missing object counts as deleted; only with a condition it is an error. */
export async function deleteObject(context: Context): Promise<S3Response> {
  await bucketOf(context).change(keyOf(context), conditionOf(context), context.pause, null)
  return s3Response(204)
}

export async function deleteObjects(context: Context): Promise<S3Response> {
  const bucket = bucketOf(context)
  const { request, body, pause } = context
  const checksum = verifyChecksums(request.headers, body)
  if (checksum === null && !request.headers.has('content-md5'))
    throw new S3Error('InvalidRequest', 'Missing required header for this request: Content-MD5')
  const root = xmlBody(context, 'Delete')
  const objects = root.children.filter(({ name }) => name === 'Object')
  if (objects.length === 0 || objects.length > MAX_KEYS) throw new S3Error('MalformedXML')
  await pause()
  const results: Xml[] = []
  for (const object of objects) {
    const key = textOf(object, 'Key')
    if (key === null || key === '') throw new S3Error('MalformedXML')
    try {
      await bucket.change(key, { ifMatch: textOf(object, 'ETag'), ifNoneMatch: null }, () => null, null)
      if (textOf(root, 'Quiet') !== 'true') results.push(element('Deleted', elements({ Key: key })))
    } catch (error) {
      if (!(error instanceof S3Error)) throw error
      results.push(element('Error', elements({ Key: key, Code: error.code, Message: error.message })))
    }
  }
  return xmlResponse('DeleteResult', results)
}
