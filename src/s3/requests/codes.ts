/** The store's word for what went wrong, or the system's. */
export function codeOf(error: Error): string | null {
  if (error.message === 'Region is missing') return 'RegionMissing'
  if ('code' in error && typeof error.code === 'string' && /^E[A-Z]+$/.test(error.code)) return error.code
  if ('Code' in error && typeof error.Code === 'string') return error.Code
  return '$metadata' in error || /^(?:Timeout|CredentialsProvider|TokenProvider)Error$/.test(error.name)
    ? error.name
    : null
}

export function statusOf(error: Error): number | null {
  const metadata = '$metadata' in error ? (error.$metadata as { httpStatusCode?: number }) : {}
  return metadata.httpStatusCode ?? null
}

export function isMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  return code === 'NoSuchKey' || code === 'NotFound' || code === 'NoSuchUpload'
}

export function isConflict(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return statusOf(error) === 412 || statusOf(error) === 409
}

/** Whether the store does not know a request at all. */
export function isUnknownThere(error: unknown): boolean {
  return error instanceof Error && (statusOf(error) === 501 || statusOf(error) === 405)
}

export function isBrokenBody(error: unknown): boolean {
  return error instanceof Error && statusOf(error) === null && codeOf(error) !== null
}
