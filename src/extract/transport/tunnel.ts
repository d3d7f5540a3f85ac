import type { ClientRequest, IncomingMessage } from 'node:http'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import { ExportError } from '../../core/index.ts'
import { CERTIFICATE_CODE, errorCode, UnreachableError, unreachableAs } from './network-error.ts'
import type { HttpProxy } from './proxies.ts'

type TunnelOptions = {
  readonly timeoutMs: number
  /** Aborts the connection. */
  readonly signal: AbortSignal
}

/**
 * Makes a proxy connect to a host, by the method CONNECT.
 * @param target host and port
 * @throws ExportError naming the proxy's host: `transient`, `credentials` (407), `refused`. The caller, which knows the
 *   request, sets its `where`
 */
export function openTunnel(
  proxy: HttpProxy,
  target: string,
  { timeoutMs, signal }: TunnelOptions,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const request = connectRequest(proxy, target, signal)
    const timer = setTimeout(() => request.destroy(new SlowProxy()), timeoutMs)
    request.once('close', () => clearTimeout(timer))
    request.once('error', (error) => reject(unreachable(proxy, error)))
    request.once('connect', ({ statusCode = 0 }: IncomingMessage, socket: Socket, head: Buffer) => {
      clearTimeout(timer)
      if (statusCode >= 200 && statusCode < 300) {
        if (head.length > 0) socket.unshift(head)
        return resolve(socket)
      }
      // The proxy's response is never shown: it may repeat the request.
      socket.on('error', () => {}).destroy()
      reject(refusal(proxy, target, statusCode))
    })
    request.end()
  })
}

class SlowProxy extends Error {
  readonly code = 'UND_ERR_CONNECT_TIMEOUT'
}

function connectRequest(
  { url, authorization }: HttpProxy,
  target: string,
  signal: AbortSignal,
): ClientRequest {
  const options = {
    method: 'CONNECT',
    // Without the brackets of an IPv6 address.
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
    path: target,
    headers: {
      host: target,
      ...(authorization === null ? {} : { 'proxy-authorization': authorization }),
    },
    agent: false,
    signal,
  } as const
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
  return url.protocol === 'https:'
    ? httpsRequest({ ...options, rejectUnauthorized: true })
    : httpRequest(options)
}

function unreachable({ host, url, variable }: HttpProxy, error: Error): ExportError {
  const code = errorCode(error)
  if (CERTIFICATE_CODE.test(code)) {
    return new ExportError(
      'refused',
      `The certificate of the proxy ${host} is not accepted: ${code}`,
      '',
      `Check ${variable}; a private certificate authority is made known with NODE_EXTRA_CA_CERTS.`,
    )
  }
  return new UnreachableError(
    'transient',
    `The proxy ${host} can't be used: ${unreachableAs(code, url) ?? 'the connection broke'} (${code})`,
    '',
    `Check ${variable}, or name the service's host in NO_PROXY; then run again.`,
  )
}

function refusal({ host, variable, authorization }: HttpProxy, target: string, status: number): ExportError {
  if (status === 407) {
    return new ExportError(
      'credentials',
      authorization === null
        ? `The proxy ${host} requires a user and a password (407)`
        : `The proxy ${host} rejects the user or the password (407)`,
      '',
      `Put them into ${variable}: http://user:password@${host}`,
    )
  }
  return new ExportError(
    status >= 500 ? 'transient' : 'refused',
    `The proxy ${host} does not connect to ${target}: it responded with ${status}`,
    '',
    `Have the proxy let ${target} through, or name the host in NO_PROXY; then run again.`,
  )
}
