import { ExportError, isExportError } from '../../core/index.ts'

/**
 * Says what a failed exchange means. The original is not kept as `cause`: a parser's error carries the
 * bytes it stumbled over, and those may be records.
 */
export function networkError(error: Error, where: string): ExportError {
  // What went wrong on the way through a proxy says so itself.
  if (isExportError(error)) return new ExportError(error.kind, error.what, where, error.next)
  const code = errorCode(error)
  if (CERTIFICATE_CODE.test(code)) {
    return new ExportError(
      'refused',
      `The service's certificate is not accepted: ${code}`,
      where,
      'Check service.base_url; a private certificate authority is made known with NODE_EXTRA_CA_CERTS.',
    )
  }
  if (NO_TLS.has(code) || /wrong version number|packet length too long/i.test(error.message)) {
    return new ExportError(
      'config',
      'The address begins with https, and what answers there speaks no TLS',
      where,
      'Correct service.base_url: http:// for a service without TLS, or the port that speaks it.',
    )
  }
  return new ExportError(
    'transient',
    `${meaningOf(code)} (${code})`,
    where,
    'Run again later: the export goes on from where it stopped.',
  )
}

export function errorCode(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** What a code of the system or of undici means. */
export function meaningOf(code: string): string {
  return MEANINGS[code] ?? 'The request failed'
}

/** What a port that speaks plain http makes of a TLS handshake. */
const NO_TLS = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_HTTP_REQUEST',
])

/** OpenSSL's verdicts on certificates; repeating the request would not change them. */
export const CERTIFICATE_CODE =
  /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_CA|PATH_LENGTH_EXCEEDED)/

const BROKEN = 'The connection broke before the whole answer was there'
const MEANINGS: Readonly<Record<string, string>> = {
  EMFILE: 'Too many files are open (ulimit -n)',
  ENOTFOUND: "The host's name is unknown",
  EAI_AGAIN: "The host's name cannot be looked up now",
  ECONNREFUSED: 'Nothing accepts connections there',
  EHOSTUNREACH: 'The host cannot be reached',
  ENETUNREACH: 'The network cannot be reached',
  ETIMEDOUT: 'The connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'No connection was made in time',
  ECONNRESET: BROKEN,
  EPIPE: BROKEN,
  UND_ERR_SOCKET: BROKEN,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'The answer is shorter or longer than announced',
  UND_ERR_HEADERS_OVERFLOW: "The answer's headers are too large",
}
