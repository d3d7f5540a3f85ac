import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { portOf } from '../../support/listening.ts'

/**
 * A self-signed certificate for `service.example` and 127.0.0.1, made for these tests with
 * `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=service.example
 * -addext subjectAltName=DNS:service.example,IP:127.0.0.1`.
 */
export const CERTIFICATE_PATH = join(import.meta.dirname, 'service-example.pem')
const pem = readFileSync(CERTIFICATE_PATH)

export type TestProxy = {
  readonly port: number
  /** Target and credentials of each CONNECT request. */
  readonly connects: readonly { readonly target: string; readonly authorization: string | null }[]
}

export type ProxyOptions = {
  /** The local port to which it connects, whatever the target of the request. */
  readonly port: number
  readonly secure?: boolean
  /** The status line that it sends instead of connecting. */
  readonly refuse?: string
  readonly silent?: boolean
}

export async function startHttpProxy(options: ProxyOptions): Promise<TestProxy> {
  const { port, secure = false, refuse, silent = false } = options
  const connects: { target: string; authorization: string | null }[] = []
  const noRequests: RequestListener = (_request, response) => response.writeHead(501).end()
  const server = secure
    ? createHttpsServer({ key: pem, cert: pem }, noRequests)
    : createHttpServer(noRequests)
  server.on('connect', (request, client: Duplex) => {
    client.on('error', () => {})
    const authorization = request.headers['proxy-authorization'] ?? null
    connects.push({ target: request.url ?? '', authorization })
    if (silent) return
    if (refuse !== undefined) {
      // Like some real proxies, it repeats the credentials.
      client.end(`HTTP/1.1 ${refuse}\r\n\r\n${authorization ?? ''}`)
      return
    }
    const onward = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      client.pipe(onward).pipe(client)
    })
    onward.on('error', () => client.destroy())
  })
  return { port: await portOf(server), connects }
}

/** Serves a local port over TLS, under the name `service.example`. @returns the port with TLS */
export async function startTls(port: number): Promise<number> {
  return portOf(
    createTlsServer({ key: pem, cert: pem }, (client) => {
      const onward = connect(port, '127.0.0.1')
      client.on('error', () => onward.destroy())
      onward.on('error', () => client.destroy())
      client.pipe(onward).pipe(client)
    }) as unknown as Server,
  )
}
