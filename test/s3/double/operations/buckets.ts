import { S3Error } from '../errors.ts'
import { Bucket, inOrder } from '../objects.ts'
import { element, Xml } from '../xml.ts'
import { type Answer, answer, bucketOf, type Context, xmlAnswer } from './operation.ts'

export function listBuckets({ buckets }: Context): Answer {
  const names = inOrder(buckets.keys())
  return xmlAnswer('ListAllMyBucketsResult', [
    element(
      'Buckets',
      names.map((name) => element('Bucket', [element('Name', name)])),
    ),
  ])
}

export function createBucket({ request, buckets }: Context): Answer {
  const name = request.bucket ?? ''
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name))
    throw new S3Error('InvalidBucketName', 'The bucket name is not valid.')
  if (buckets.has(name)) throw new S3Error('BucketAlreadyOwnedByYou')
  buckets.set(name, new Bucket(name))
  return answer(200, { location: `/${name}` })
}

export function deleteBucket(context: Context): Answer {
  const bucket = bucketOf(context)
  if (bucket.objects.size > 0) throw new S3Error('BucketNotEmpty')
  context.buckets.delete(bucket.name)
  return answer(204)
}

export function headBucket(context: Context): Answer {
  bucketOf(context)
  return answer(200, { 'x-amz-bucket-region': context.region })
}

export function bucketLocation(context: Context): Answer {
  bucketOf(context)
  // The oldest region has no name here.
  return xmlAnswer('LocationConstraint', [new Xml(context.region === 'us-east-1' ? '' : context.region)])
}
