import { codeOf, type ErrorKind, ExportError, isExportError, plainError } from '../core/index.ts'

/** No connection was made, so the request was not sent. */
export class UnreachableError extends ExportError {}

type NetworkRequest = { readonly url: URL; readonly where: string }

/** The original is not kept as `cause`: a parser's error holds the bytes that it could not parse, perhaps records. */
export function networkError(error: Error, { url, where }: NetworkRequest, addressKey: string): ExportError {
  // Errors of a proxy are complete already.
  if (isExportError(error)) {
    const Kind = error instanceof UnreachableError ? UnreachableError : ExportError
    return new Kind({ ...plainError(error), where })
  }
  const code = errorCode(error)
  const fail = (kind: ErrorKind, what: string, next: string): ExportError =>
    new ExportError({ kind, what, where, next })
  if (CERTIFICATE_CODE.test(code)) {
    const what = `The certificate of ${authorityOf(url)} is not accepted: ${code}`
    const advice = `Check ${addressKey}. An authority of your own is made known with NODE_EXTRA_CA_CERTS=<file>.`
    return fail('refused', what, CERTIFICATE_ADVICE[code] ?? advice)
  }
  if (NO_TLS.has(code)) {
    const what = 'The address begins with https, but the server there does not use TLS'
    const next = `Correct ${addressKey}: http:// for a server without TLS, or use its TLS port.`
    return fail('config', what, next)
  }
  const unreachable = unreachableAs(code, url)
  if (unreachable === null) {
    const what = `${MEANINGS[code] ?? 'The request failed'} (${code})`
    return fail('transient', what, 'Run again later: the export resumes where it stopped.')
  }
  const next = `Check host and port of ${addressKey}. If they are right, run again later.`
  return new UnreachableError({ kind: 'transient', what: `${unreachable} (${code})`, where, next })
}

const CERTIFICATE_ADVICE: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'It is for another host: name the host as the certificate does.',
  CERT_HAS_EXPIRED: 'It has expired: whoever runs that server has to renew it.',
  CERT_NOT_YET_VALID: 'It is not valid yet: check the clock of this machine.',
}

export function errorCode(error: Error): string {
  return codeOf(error) || error.name
}

/** Why there is no connection to an address; null: the code means something else. */
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

/** The codes of a TLS handshake with a port for plain http. */
const NO_TLS = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_HTTP_REQUEST',
])

/** OpenSSL's codes for rejected certificates; a retry would not change them. */
export const CERTIFICATE_CODE =
  /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_CA|PATH_LENGTH_EXCEEDED)/

const BROKEN = 'The connection broke before the response was complete'
const MEANINGS: Readonly<Record<string, string>> = {
  EMFILE: 'Too many files are open (ulimit -n)',
  ECONNRESET: BROKEN,
  EPIPE: BROKEN,
  UND_ERR_SOCKET: BROKEN,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'The response is shorter or longer than announced',
  UND_ERR_HEADERS_OVERFLOW: "The response's headers are too large",
}
