/**
 * An error response, with its code in S3's documentation.
 * Source: Amazon S3 API reference, "Error responses", list of error codes.
 */
export class S3Error extends Error {
  readonly status: number

  /**
   * @param details more elements of the response, such as the string to sign
   * @param status another one than the code's own: some responses begin with 200 and become errors
   */
  constructor(
    readonly code: string,
    message = WORDS[code] ?? code,
    readonly details: Readonly<Record<string, string>> = {},
    status?: number,
  ) {
    super(message)
    this.status = status ?? STATUS[code] ?? 400
  }
}

/** Codes with another status than 400. */
const STATUS: Readonly<Record<string, number>> = {
  NotModified: 304,
  AccessDenied: 403,
  InvalidAccessKeyId: 403,
  RequestTimeTooSkewed: 403,
  SignatureDoesNotMatch: 403,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  MethodNotAllowed: 405,
  BucketAlreadyOwnedByYou: 409,
  BucketNotEmpty: 409,
  ConditionalRequestConflict: 409,
  OperationAborted: 409,
  MissingContentLength: 411,
  PreconditionFailed: 412,
  InvalidRange: 416,
  InternalError: 500,
  NotImplemented: 501,
  ServiceUnavailable: 503,
  SlowDown: 503,
}

const WORDS: Readonly<Record<string, string>> = {
  AccessDenied: 'Access Denied',
  BadDigest: 'The digest you specified did not match what was received.',
  ConditionalRequestConflict: 'A conflicting operation occurred during the request. Try again.',
  EntityTooSmall: 'A part is smaller than the minimum allowed size.',
  InternalError: 'An internal error occurred. Try again.',
  InvalidAccessKeyId: 'The access key id does not exist.',
  InvalidPart: 'A part could not be found, or its entity tag is another one.',
  InvalidPartOrder: 'The list of parts was not in ascending order.',
  InvalidToken: 'The token is malformed or otherwise not valid.',
  MalformedXML: 'The XML is not well-formed or breaks the schema.',
  NoSuchBucket: 'The bucket does not exist.',
  NoSuchKey: 'The key does not exist.',
  NoSuchUpload: 'The upload does not exist: its id is wrong, or it was aborted or completed.',
  NotImplemented: 'Something in the request implies functionality that is not implemented.',
  PreconditionFailed: 'At least one of the preconditions did not hold.',
  SlowDown: 'Reduce the request rate.',
}
