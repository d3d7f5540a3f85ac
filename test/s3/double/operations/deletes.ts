import { verifyChecksums } from '../checksums.ts'
import { S3Error } from '../errors.ts'
import { element, elements, textOf, type Xml } from '../xml.ts'
import {
  type Answer,
  answer,
  bucketOf,
  type Context,
  conditionOf,
  keyOf,
  xmlAnswer,
  xmlBody,
} from './operation.ts'

// Source: Amazon S3 API reference, DeleteObjects.
const MAX_KEYS = 1000

/** What is not there is deleted already; only where a condition was given that is an error. */
export async function deleteObject(context: Context): Promise<Answer> {
  await bucketOf(context).change(keyOf(context), conditionOf(context), context.pause, null)
  return answer(204)
}

export async function deleteObjects(context: Context): Promise<Answer> {
  const bucket = bucketOf(context)
  const { request, body, pause } = context
  const checksum = verifyChecksums(request.headers, body)
  if (checksum === null && !request.headers.has('content-md5'))
    throw new S3Error('InvalidRequest', 'Missing required header for this request: Content-MD5')
  const root = xmlBody(context, 'Delete')
  const objects = root.children.filter(({ name }) => name === 'Object')
  if (objects.length === 0 || objects.length > MAX_KEYS) throw new S3Error('MalformedXML')
  await pause()
  const said: Xml[] = []
  for (const object of objects) {
    const key = textOf(object, 'Key')
    if (key === null || key === '') throw new S3Error('MalformedXML')
    try {
      await bucket.change(key, { ifMatch: textOf(object, 'ETag'), ifNoneMatch: null }, () => null, null)
      if (textOf(root, 'Quiet') !== 'true') said.push(element('Deleted', elements({ Key: key })))
    } catch (error) {
      if (!(error instanceof S3Error)) throw error
      said.push(element('Error', elements({ Key: key, Code: error.code, Message: error.message })))
    }
  }
  return xmlAnswer('DeleteResult', said)
}
