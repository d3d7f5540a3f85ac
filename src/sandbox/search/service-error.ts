/** A response other than success: becomes a status, headers and the error body of the service. */
export class ServiceError extends Error {
  readonly status: number
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
    super(`HTTP ${status}`)
    this.status = status
    this.body = body
    this.headers = headers
  }
}

/** Source: the public documentation: `{"error":{"code","message"}}`, `code` stable. */
export function serviceError(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): ServiceError {
  return new ServiceError(status, { error: { code, message } }, headers)
}

export type ValidationDetail = { loc: (string | number)[]; msg: string; type: string }

/** Source: the public documentation: status 422 with `{"detail":[{"loc","msg","type"}]}`. */
export function validationError(detail: readonly ValidationDetail[]): ServiceError {
  return new ServiceError(422, { detail })
}
