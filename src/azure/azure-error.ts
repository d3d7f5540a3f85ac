import { type Cause, CLOCK, causeOf, type StoreErrors } from '../bucket/index.ts'
import { codeOf, ExportError } from '../core/index.ts'

const KEYS =
  'Check AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN.'

const DENIED: Cause = [
  'storage',
  'The store does not allow it',
  'The credentials need the role Storage Blob Data Contributor for the container, or a SAS token that may read, add, create, write, delete and list.',
]
const REFUSED: Cause = [
  'credentials',
  'The store rejects the credentials, or requests from this network',
  `${KEYS} Check the firewall of the storage account.`,
]
const UNKNOWN: Cause = ['config', 'There are no credentials for object storage', KEYS]

/** By error code of the service and the SDK, where the status says less: what it means, and what to do about it. */
const CAUSES: Record<string, Cause> = {
  ContainerNotFound: [
    'config',
    'There is no such container',
    'Create it, or correct load.path or load.azure.endpoint.',
  ],
  AuthenticationFailed: REFUSED,
  InvalidAuthenticationInfo: REFUSED,
  AuthenticationError: REFUSED,
  AuthorizationFailure: REFUSED,
  CredentialUnavailableError: UNKNOWN,
  AggregateAuthenticationError: UNKNOWN,
}

/** Turns an error of the SDK into an ExportError with its path and an advice. Other errors stay as they are. */
export function azureError(error: unknown, where: string): unknown {
  if (error instanceof ExportError || !(error instanceof Error)) return error
  const [code, status] = [storeCodeOf(error), statusOf(error)]
  if (code === null && status === null) return error
  const [kind, what, next] = isSkewed(error) ? CLOCK : causeOf(ERRORS, status, code)
  // The SDK's error has the request in it, with its signature.
  const cause = new Error([error.name, status, code].filter((each) => each !== null).join(' '))
  return new ExportError({ kind, what, where, next, cause })
}

const ERRORS: StoreErrors = {
  causes: CAUSES,
  statuses: { 401: REFUSED, 403: DENIED },
  section: 'load.azure',
  address: 'AZURE_STORAGE_ACCOUNT, load.azure.endpoint',
}

// The service takes requests of the last 15 minutes.
const MAX_SKEW_MS = 15 * 60_000

/** A wrong clock and a wrong key give the same code. */
function isSkewed(error: Error): boolean {
  const { response } = error as { response?: { headers: { get(name: string): string | undefined } } }
  const there = Date.parse(response?.headers.get('date') ?? '')
  return storeCodeOf(error) === 'AuthenticationFailed' && Math.abs(there - Date.now()) > MAX_SKEW_MS
}

/** The service's error code, or the system's. */
function storeCodeOf(error: Error): string | null {
  const { details } = error as { details?: { errorCode?: string } }
  const code = details?.errorCode ?? codeOf(error)
  if (code !== '') return code
  return /^(?:Abort|Authentication|CredentialUnavailable|AggregateAuthentication)Error$/.test(error.name)
    ? error.name
    : null
}

export function statusOf(error: unknown): number | null {
  const { statusCode } = (error ?? {}) as { statusCode?: unknown }
  return typeof statusCode === 'number' ? statusCode : null
}

// A longer pause is more than a store that is busy.
const MAX_RETRY_MS = 30_000

export function retryAfterMs(error: unknown): number | null {
  const { response } = (error ?? {}) as { response?: { headers: { get(name: string): string | undefined } } }
  const seconds = Number(response?.headers.get('retry-after') || Number.NaN)
  return Number.isNaN(seconds) ? null : Math.min(seconds * 1000, MAX_RETRY_MS)
}

export function isMissing(error: unknown): boolean {
  return statusOf(error) === 404 && error instanceof Error && storeCodeOf(error) !== 'ContainerNotFound'
}

/** A condition does not hold, or the parts of an upload went with another upload of the same name. */
export function isConflict(error: unknown): boolean {
  const status = statusOf(error)
  return (
    status === 412 ||
    status === 409 ||
    (status === 400 && error instanceof Error && storeCodeOf(error) === 'InvalidBlockList')
  )
}
