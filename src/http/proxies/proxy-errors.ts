import { ExportError } from '../../core/index.ts'
import { CERTIFICATE_CODE, errorCode, UnreachableError, unreachableAs } from '../network-error.ts'
import type { HttpProxy } from './proxies.ts'

export function unreachableProxy({ host, url, variable }: HttpProxy, error: Error): ExportError {
  // A connection counts as one when the proxy has responded.
  const code = errorCode(error).replace('HEADERS_TIMEOUT', 'CONNECT_TIMEOUT')
  if (CERTIFICATE_CODE.test(code)) {
    return new ExportError({
      kind: 'refused',
      what: `The certificate of the proxy ${host} is not accepted: ${code}`,
      where: '',
      next: `Check ${variable}; a private certificate authority is made known with NODE_EXTRA_CA_CERTS.`,
    })
  }
  return new UnreachableError({
    kind: 'transient',
    what: `The proxy ${host} cannot be used: ${unreachableAs(code, url) ?? 'the connection broke'} (${code})`,
    where: '',
    next: `Check ${variable}, or name the service's host in NO_PROXY; then run again.`,
  })
}

/** Of a proxy that answers CONNECT with another status than 2xx. */
export function refusedBy(
  { host, variable, authorization }: HttpProxy,
  target: string,
  status: number,
): ExportError {
  if (status === 407) {
    return new ExportError({
      kind: 'credentials',
      what:
        authorization === null
          ? `The proxy ${host} requires a user and a password (407)`
          : `The proxy ${host} rejects the user or the password (407)`,
      where: '',
      next: `Put them into ${variable}: http://user:password@${host}`,
    })
  }
  return new ExportError({
    kind: status >= 500 ? 'transient' : 'refused',
    what: `The proxy ${host} does not connect to ${target}: it responded with ${status}`,
    where: '',
    next: `Have the proxy let ${target} through, or name the host in NO_PROXY; then run again.`,
  })
}
