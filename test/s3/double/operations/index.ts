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
import type { Context, S3Response } from './operation.ts'
import { putObject } from './puts.ts'
import { getObject, headObject } from './reads.ts'

type Operation = {
  readonly method: string
  readonly on: 'service' | 'bucket' | 'key'
  /** Parameters that distinguish it. */
  readonly by: readonly string[]
  /** Parameters that it accepts besides. */
  readonly query: readonly string[]
  /** Conditions that it honours. */
  readonly conditions: readonly string[]
  readonly isCopy?: true
  readonly run: (context: Context) => S3Response | Promise<S3Response>
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

/** The operations that this double knows; any other one gets `NotImplemented`. */
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

/** @returns null when the double does not know the operation */
export function operationOf(request: S3Request): OperationName | null {
  const on = request.bucket === null ? 'service' : request.key === null ? 'bucket' : 'key'
  const isCopy = request.headers.has('x-amz-copy-source')
  for (const [name, operation] of Object.entries(OPERATIONS) as [OperationName, Operation][]) {
    if (operation.method !== request.method || operation.on !== on) continue
    if ((operation.isCopy ?? false) !== isCopy) continue
    const names = request.query.map(([each]) => each).filter((each) => each !== 'x-id')
    const matches = operation.by.every((each) => names.includes(each))
    if (matches && names.every((each) => operation.by.includes(each) || operation.query.includes(each)))
      return name
  }
  return null
}

/** Headers that an operation of this double evaluates, besides conditions. */
const KNOWN_HEADERS =
  /^x-amz-(?:date|content-sha256|security-token|user-agent|meta-.+|metadata-directive|copy-source(?:-range|-if-match|-if-none-match)?|checksum-.+|sdk-checksum-algorithm|api-version)$/

/** @throws S3Error `NotImplemented` for a header that would have no effect */
export function requireKnownHeaders({ headers }: S3Request, name: OperationName): void {
  const { conditions }: Operation = OPERATIONS[name]
  for (const header of headers.keys()) {
    const isKnown = header.startsWith('x-amz-')
      ? KNOWN_HEADERS.test(header)
      : !/^(?:if-|range$)/.test(header) || conditions.includes(header)
    if (!isKnown) throw new S3Error('NotImplemented', undefined, { Header: header })
  }
}
