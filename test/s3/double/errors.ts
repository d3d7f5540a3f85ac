/**
 * An error response, with its code in S3's documentation.
 * Source: Amazon S3 API reference, "Error responses", list of error codes.
 */
export class S3Error extends Error {
  readonly status: number

  /** @param status another one than the code's own: some responses begin with 200 and become errors */
  constructor(
    readonly code: string,
    status?: number,
  ) {
    super(`${code}, says the double of S3`)
    this.status = status ?? STATUS[code] ?? 400
  }
}

/** Codes with another status than 400. */
const STATUS: Readonly<Record<string, number>> = {
  AccessDenied: 403,
  InvalidAccessKeyId: 403,
  RequestTimeTooSkewed: 403,
  SignatureDoesNotMatch: 403,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  ConditionalRequestConflict: 409,
  PreconditionFailed: 412,
  InvalidRange: 416,
  InternalError: 500,
  NotImplemented: 501,
  SlowDown: 503,
}
