import { ExportError, isExportError } from '../../core/index.ts'

/** No connection came about: nobody has seen anything of the request. */
export class UnreachableError extends ExportError {}

type NetworkRequest = { readonly url: URL; readonly where: string }

/**
 * Says what a failed exchange means. The original is not kept as `cause`: a parser's error carries the
 * bytes it stumbled over, and those may be records.
 */
export function networkError(error: Error, { url, where }: NetworkRequest): ExportError {
  // What went wrong on the way through a proxy says so itself.
  if (isExportError(error)) {
    const Kind = error instanceof UnreachableError ? UnreachableError : ExportError
    return new Kind(error.kind, error.what, where, error.next)
  }
  const code = errorCode(error)
  if (CERTIFICATE_CODE.test(code)) {
    return new ExportError(
      'refused',
      `The service's certificate is not accepted: ${code}`,
      where,
      'Check service.base_url; a private certificate authority is made known with NODE_EXTRA_CA_CERTS.',
    )
  }
  if (NO_TLS.has(code)) {
    return new ExportError(
      'config',
      'The address begins with https, and what answers there speaks no TLS',
      where,
      'Correct service.base_url: http:// for a service without TLS, or the port that speaks it.',
    )
  }
  const unreachable = unreachableAs(code, url)
  if (unreachable !== null) {
    return new UnreachableError(
      'transient',
      `${unreachable} (${code})`,
      where,
      'Check host and port of service.base_url; where they are right, run again later.',
    )
  }
  return new ExportError(
    'transient',
    `${MEANINGS[code] ?? 'The request failed'} (${code})`,
    where,
    'Run again later: the export goes on from where it stopped.',
  )
}

export function errorCode(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** Why there is no connection to an address; null: the code says something else. */
export function unreachableAs(code: string, url: URL): string | null {
  return Object.hasOwn(UNREACHABLE, code) ? UNREACHABLE[code]!(url.hostname, authorityOf(url)) : null
}

/** Host and port, also where the scheme implies the port. */
function authorityOf({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
}

const UNREACHABLE: Readonly<Record<string, (host: string, authority: string) => string>> = {
  ENOTFOUND: (host) => `The name ${host} is unknown`,
  EAI_AGAIN: (host) => `The name ${host} cannot be looked up now`,
  ECONNREFUSED: (_, authority) => `Nothing accepts connections at ${authority}`,
  EHOSTUNREACH: (host) => `The host ${host} cannot be reached`,
  ENETUNREACH: (host) => `The network of ${host} cannot be reached`,
  ETIMEDOUT: (_, authority) => `The connection to ${authority} timed out`,
  UND_ERR_CONNECT_TIMEOUT: (_, authority) => `No connection to ${authority} was made in time`,
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
  ECONNRESET: BROKEN,
  EPIPE: BROKEN,
  UND_ERR_SOCKET: BROKEN,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'The answer is shorter or longer than announced',
  UND_ERR_HEADERS_OVERFLOW: "The answer's headers are too large",
}
