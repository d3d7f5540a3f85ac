import { AGAIN, type Cause, CLOCK, causeOf, type StoreErrors } from '../bucket/index.ts'
import { codeOf, ExportError } from '../core/index.ts'

const REJECTED: Cause = [
  'credentials',
  'The store rejects the access key, the secret access key or the session token',
  `Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the profile in ~/.aws; ${AGAIN}`,
]
const UNKNOWN: Cause = [
  'config',
  'There are no credentials for object storage',
  'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with a profile in ~/.aws whose session has not ended.',
]
const DENIED: Cause = [
  'storage',
  'The store does not allow it',
  'The credentials need s3:ListBucket, s3:ListBucketMultipartUploads, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload for load.path.',
]
const ELSEWHERE: Cause = [
  'config',
  'The bucket is in another region, or there is none set',
  'Set load.s3.region or AWS_REGION to that of the bucket.',
]

/** By error code of stores and the SDK, where the status says less: what it means, and what to do about it. */
const CAUSES: Record<string, Cause> = {
  NoSuchBucket: ['config', 'There is no such bucket', 'Create it, or correct load.path or load.s3.endpoint.'],
  CredentialsProviderError: UNKNOWN,
  TokenProviderError: UNKNOWN,
  InvalidAccessKeyId: REJECTED,
  SignatureDoesNotMatch: REJECTED,
  ExpiredToken: REJECTED,
  InvalidToken: REJECTED,
  RequestTimeTooSkewed: CLOCK,
  AuthorizationHeaderMalformed: ELSEWHERE,
  RegionMissing: ELSEWHERE,
}

/** Turns an error of the SDK into an ExportError with its path and an advice. Other errors stay as they are. */
export function s3Error(error: unknown, where: string): unknown {
  if (error instanceof ExportError || !(error instanceof Error)) return error
  const code = storeCodeOf(error)
  const status = statusOf(error)
  if (code === null && status === null) return error
  const [kind, what, next] = causeOf(ERRORS, status, code)
  return new ExportError({ kind, what, where, next, cause: error })
}

const ERRORS: StoreErrors = {
  causes: CAUSES,
  statuses: { 301: ELSEWHERE, 403: DENIED },
  section: 'load.s3',
  address: 'load.s3.endpoint',
}

/** The store's error code, or the system's. */
function storeCodeOf(error: Error): string | null {
  if (error.message === 'Region is missing') return 'RegionMissing'
  if (/^E[A-Z]+$/.test(codeOf(error))) return codeOf(error)
  if ('Code' in error && typeof error.Code === 'string') return error.Code
  return '$metadata' in error || /^(?:Abort|Timeout|CredentialsProvider|TokenProvider)Error$/.test(error.name)
    ? error.name
    : null
}

export function statusOf(error: unknown): number | null {
  if (!(error instanceof Error)) return null
  const metadata = '$metadata' in error ? (error.$metadata as { httpStatusCode?: number }) : {}
  return metadata.httpStatusCode ?? null
}

export function isMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = storeCodeOf(error)
  return code === 'NoSuchKey' || code === 'NotFound' || code === 'NoSuchUpload'
}

export function isConflict(error: unknown): boolean {
  return statusOf(error) === 412 || statusOf(error) === 409
}

/** Whether the store does not implement a request. */
export function isUnknownThere(error: unknown): boolean {
  return statusOf(error) === 501 || statusOf(error) === 405
}

export function isBrokenBody(error: unknown): boolean {
  return error instanceof Error && statusOf(error) === null && storeCodeOf(error) !== null
}
