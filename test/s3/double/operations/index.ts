import { S3Error } from '../errors.ts'
import { Bucket } from '../objects.ts'
import type { S3Request } from '../request.ts'
import { listObjects, listUploads } from './listings.ts'
import { abortUpload, completeUpload, createUpload, uploadPart } from './multipart.ts'
import { copyObject, deleteObject, getObject, putObject } from './objects.ts'
import { type Context, type S3Response, s3Response } from './operation.ts'

type Operation = {
  readonly method: string
  readonly on: 'bucket' | 'key'
  /** Parameters that distinguish it. */
  readonly by: readonly string[]
  /** Parameters that it accepts besides. */
  readonly query: readonly string[]
  /** Conditions that it honours. */
  readonly conditions: readonly string[]
  readonly isCopy?: true
  readonly run: (context: Context) => S3Response
}

const WRITE = ['if-match', 'if-none-match']
const READ = ['if-match', 'range']
const LIST = 'prefix delimiter encoding-type max-keys start-after continuation-token fetch-owner'.split(' ')
const UPLOADS = 'prefix key-marker upload-id-marker max-uploads'.split(' ')
const UPLOAD = ['uploadId']
const PART = ['uploadId', 'partNumber']

const bucket = { on: 'bucket', by: [], query: [], conditions: [] } as const
const key = { on: 'key', by: [], query: [], conditions: [] } as const

function createBucket({ request, buckets }: Context): S3Response {
  buckets.set(request.bucket!, new Bucket(request.bucket!))
  return s3Response(200)
}

/** What Spillway and the engines that read its tables send; any other operation gets `NotImplemented`. */
export const OPERATIONS = {
  CreateBucket: { ...bucket, method: 'PUT', run: createBucket },
  ListObjectsV2: { ...bucket, method: 'GET', by: ['list-type'], query: LIST, run: listObjects },
  ListMultipartUploads: { ...bucket, method: 'GET', by: ['uploads'], query: UPLOADS, run: listUploads },
  PutObject: { ...key, method: 'PUT', conditions: WRITE, run: putObject },
  CopyObject: { ...key, method: 'PUT', isCopy: true, run: copyObject },
  UploadPart: { ...key, method: 'PUT', by: PART, run: uploadPart },
  GetObject: { ...key, method: 'GET', conditions: READ, run: getObject },
  HeadObject: { ...key, method: 'HEAD', conditions: READ, run: getObject },
  DeleteObject: { ...key, method: 'DELETE', conditions: ['if-match'], run: deleteObject },
  AbortMultipartUpload: { ...key, method: 'DELETE', by: UPLOAD, run: abortUpload },
  CreateMultipartUpload: { ...key, method: 'POST', by: ['uploads'], run: createUpload },
  CompleteMultipartUpload: { ...key, method: 'POST', by: UPLOAD, conditions: WRITE, run: completeUpload },
} as const satisfies Record<string, Operation>

export type OperationName = keyof typeof OPERATIONS

/** Those that change what is stored. */
export const CHANGES = [
  'PutObject',
  'CopyObject',
  'DeleteObject',
  'CreateMultipartUpload',
  'UploadPart',
  'CompleteMultipartUpload',
  'AbortMultipartUpload',
] as const satisfies readonly OperationName[]

/** @returns null when the double does not know the operation */
export function operationOf(request: S3Request): OperationName | null {
  const on = request.key === null ? 'bucket' : 'key'
  const isCopy = request.headers.has('x-amz-copy-source')
  for (const [name, operation] of Object.entries(OPERATIONS) as [OperationName, Operation][]) {
    if (operation.method !== request.method || operation.on !== on || request.bucket === null) continue
    if ((operation.isCopy ?? false) !== isCopy) continue
    const names = request.query.map(([each]) => each).filter((each) => each !== 'x-id')
    const matches = operation.by.every((each) => names.includes(each))
    if (matches && names.every((each) => operation.by.includes(each) || operation.query.includes(each)))
      return name
  }
  return null
}

/** Headers that an operation of this double evaluates, besides conditions; checksums are taken as right. */
const KNOWN_HEADERS =
  /^x-amz-(?:date|content-sha256|security-token|user-agent|meta-.+|copy-source|checksum-.+|sdk-checksum-algorithm|api-version)$/

/** @throws S3Error `NotImplemented` for a header that would have no effect */
export function requireKnownHeaders({ headers }: S3Request, name: OperationName): void {
  const { conditions }: Operation = OPERATIONS[name]
  for (const header of headers.keys()) {
    const isKnown = header.startsWith('x-amz-')
      ? KNOWN_HEADERS.test(header)
      : !/^(?:if-|range$)/.test(header) || conditions.includes(header)
    if (!isKnown) throw new S3Error('NotImplemented')
  }
}
