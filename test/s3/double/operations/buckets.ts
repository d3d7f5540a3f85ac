import { S3Error } from '../errors.ts'
import { Bucket, inOrder } from '../objects.ts'
import { element, Xml } from '../xml.ts'
import { bucketOf, type Context, type S3Response, s3Response, xmlResponse } from './operation.ts'

export function listBuckets({ buckets }: Context): S3Response {
  const names = inOrder(buckets.keys())
  return xmlResponse('ListAllMyBucketsResult', [
    element(
      'Buckets',
      names.map((name) => element('Bucket', [element('Name', name)])),
    ),
  ])
}

export function createBucket({ request, buckets }: Context): S3Response {
  const name = request.bucket ?? ''
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name))
    throw new S3Error('InvalidBucketName', 'The bucket name is not valid.')
  if (buckets.has(name)) throw new S3Error('BucketAlreadyOwnedByYou')
  buckets.set(name, new Bucket(name))
  return s3Response(200, { location: `/${name}` })
}

export function deleteBucket(context: Context): S3Response {
  const bucket = bucketOf(context)
  if (bucket.objects.size > 0) throw new S3Error('BucketNotEmpty')
  context.buckets.delete(bucket.name)
  return s3Response(204)
}

export function headBucket(context: Context): S3Response {
  bucketOf(context)
  return s3Response(200, { 'x-amz-bucket-region': context.region })
}

export function bucketLocation(context: Context): S3Response {
  bucketOf(context)
  // The oldest region has no name in this response.
  return xmlResponse('LocationConstraint', [new Xml(context.region === 'us-east-1' ? '' : context.region)])
}
