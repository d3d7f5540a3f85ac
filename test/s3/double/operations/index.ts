import { S3Error } from '../errors.ts'
import type { S3Request } from '../request.ts'
import { bucketLocation, createBucket, deleteBucket, headBucket, listBuckets } from './buckets.ts'
import { copyObject, uploadPartCopy } from './copies.ts'
import { deleteObject, deleteObjects } from './deletes.ts'
import { listMultipartUploads, listObjects, listParts } from './listings.ts'
import {
  abortMultipartUpload,
  completeMultipartUpload,
  createMultipartUpload,
  uploadPart,
} from './multipart.ts'
import type { Answer, Context } from './operation.ts'
import { putObject } from './puts.ts'
import { getObject, headObject } from './reads.ts'

type Operation = {
  readonly method: string
  readonly on: 'service' | 'bucket' | 'key'
  /** Parameters that tell it from others. */
  readonly by: readonly string[]
  /** Parameters that it may have besides. */
  readonly query: readonly string[]
  /** Conditions that it keeps to. */
  readonly conditions: readonly string[]
  readonly isCopy?: true
  readonly run: (context: Context) => Answer | Promise<Answer>
}

const WRITE = ['if-match', 'if-none-match']
const READ = [...WRITE, 'range']

const bucket = { on: 'bucket', by: [], query: [], conditions: [] } as const
const key = { on: 'key', by: [], query: [], conditions: [] } as const
const LIST = [
  'prefix',
  'delimiter',
  'encoding-type',
  'max-keys',
  'start-after',
  'continuation-token',
  'fetch-owner',
]
const PART = ['uploadId', 'partNumber']

/** What this double knows of S3; everything else is answered with `NotImplemented`. */
export const OPERATIONS = {
  ListBuckets: { ...bucket, on: 'service', method: 'GET', run: listBuckets },
  CreateBucket: { ...bucket, method: 'PUT', run: createBucket },
  DeleteBucket: { ...bucket, method: 'DELETE', run: deleteBucket },
  HeadBucket: { ...bucket, method: 'HEAD', run: headBucket },
  GetBucketLocation: { ...bucket, method: 'GET', by: ['location'], run: bucketLocation },
  ListObjectsV2: { ...bucket, method: 'GET', by: ['list-type'], query: LIST, run: listObjects },
  ListMultipartUploads: {
    ...bucket,
    method: 'GET',
    by: ['uploads'],
    query: ['prefix', 'key-marker', 'upload-id-marker', 'max-uploads'],
    run: listMultipartUploads,
  },
  DeleteObjects: { ...bucket, method: 'POST', by: ['delete'], run: deleteObjects },
  PutObject: { ...key, method: 'PUT', conditions: WRITE, run: putObject },
  CopyObject: { ...key, method: 'PUT', conditions: WRITE, isCopy: true, run: copyObject },
  UploadPart: { ...key, method: 'PUT', by: PART, run: uploadPart },
  UploadPartCopy: { ...key, method: 'PUT', by: PART, isCopy: true, run: uploadPartCopy },
  GetObject: { ...key, method: 'GET', conditions: READ, run: getObject },
  HeadObject: { ...key, method: 'HEAD', conditions: READ, run: headObject },
  ListParts: {
    ...key,
    method: 'GET',
    by: ['uploadId'],
    query: ['max-parts', 'part-number-marker'],
    run: listParts,
  },
  DeleteObject: { ...key, method: 'DELETE', conditions: ['if-match'], run: deleteObject },
  AbortMultipartUpload: { ...key, method: 'DELETE', by: ['uploadId'], run: abortMultipartUpload },
  CreateMultipartUpload: { ...key, method: 'POST', by: ['uploads'], run: createMultipartUpload },
  CompleteMultipartUpload: {
    ...key,
    method: 'POST',
    by: ['uploadId'],
    conditions: WRITE,
    run: completeMultipartUpload,
  },
} as const satisfies Record<string, Operation>

export type OperationName = keyof typeof OPERATIONS

/** @returns null when this is nothing that the double knows */
export function operationOf(request: S3Request): OperationName | null {
  const on = request.bucket === null ? 'service' : request.key === null ? 'bucket' : 'key'
  const isCopy = request.headers.has('x-amz-copy-source')
  for (const [name, operation] of Object.entries(OPERATIONS) as [OperationName, Operation][]) {
    if (operation.method !== request.method || operation.on !== on) continue
    if ((operation.isCopy ?? false) !== isCopy) continue
    const names = request.query.map(([each]) => each).filter((each) => each !== 'x-id')
    const isIt = operation.by.every((each) => names.includes(each))
    if (isIt && names.every((each) => operation.by.includes(each) || operation.query.includes(each)))
      return name
  }
  return null
}

/** Headers that mean something to an operation of this double, besides conditions. */
const KNOWN =
  /^x-amz-(?:date|content-sha256|security-token|user-agent|meta-.+|metadata-directive|copy-source(?:-range|-if-match|-if-none-match)?|checksum-.+|sdk-checksum-algorithm)$/

/** @throws S3Error `NotImplemented` for a header that asks for what would not happen */
export function requireKnownHeaders({ headers }: S3Request, name: OperationName): void {
  const { conditions }: Operation = OPERATIONS[name]
  for (const header of headers.keys()) {
    const isKnown = header.startsWith('x-amz-')
      ? KNOWN.test(header)
      : !/^(?:if-|range$)/.test(header) || conditions.includes(header)
    if (!isKnown) throw new S3Error('NotImplemented', undefined, { Header: header })
  }
}
