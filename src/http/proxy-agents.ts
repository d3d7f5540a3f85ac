import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type HttpProxy, type ProxyOf, proxiesOf } from './proxies.ts'
import { refusedBy, unreachableProxy } from './proxy-errors.ts'

export type ProxyAgents = { readonly httpAgent: HttpAgent; readonly httpsAgent: HttpsAgent }

/**
 * Agents for clients that connect by Node.js's own means, such as SDKs: each connection takes the way that the HTTP client
 * takes. Errors of a proxy are ExportErrors.
 * @returns null: no variable names a proxy
 * @throws ExportError `config` when a variable holds no address
 */
export function proxyAgents(connections: number, timeoutMs: number): ProxyAgents | null {
  const proxyOf = proxiesOf(process.env)
  if (proxyOf === null) return null
  const options = { keepAlive: true, maxSockets: connections, noDelay: true }
  const httpAgent = new HttpAgent(options)
  const httpsAgent = new HttpsAgent(options)
  const agents = [
    ['http:', httpAgent],
    ['https:', httpsAgent],
  ] as const
  for (const [protocol, agent] of agents) Object.assign(agent, { createConnection: creator(protocol) })
  return { httpAgent, httpsAgent }

  function creator(protocol: 'http:' | 'https:') {
    return (to: Target, done: (error: Error | null, socket?: Socket) => void): undefined => {
      // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
      const tls = { ...to, rejectUnauthorized: true, servername: to.servername || to.host }
      connectionTo(to, protocol, proxyOf!, timeoutMs).then(
        (socket) => done(null, protocol === 'http:' ? socket : connectTls({ ...tls, socket })),
        done,
      )
    }
  }
}

type Target = { readonly host: string; readonly port: number; readonly servername?: string }

async function connectionTo(
  { host, port }: Target,
  protocol: string,
  proxyOf: ProxyOf,
  timeoutMs: number,
): Promise<Socket> {
  const name = host.includes(':') ? `[${host}]` : host
  const proxy = proxyOf(`${protocol}//${name}:${port}`)
  return proxy === null ? connect({ host, port }) : tunnelTo(`${name}:${port}`, proxy, timeoutMs)
}

function tunnelTo(target: string, proxy: HttpProxy, timeoutMs: number): Promise<Socket> {
  const { url, authorization } = proxy
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const request = send(url.origin, {
      method: 'CONNECT',
      path: target,
      agent: false,
      timeout: timeoutMs,
      rejectUnauthorized: true,
      headers: { host: target, ...(authorization === null ? {} : { 'proxy-authorization': authorization }) },
    })
    request.once('connect', ({ statusCode = 0 }, socket: Socket) => {
      if (statusCode >= 200 && statusCode < 300) return resolve(socket.setTimeout(0))
      // The proxy's response is never shown: it may repeat the request.
      socket.on('error', () => {}).destroy()
      reject(refusedBy(proxy, target, statusCode))
    })
    request.once('timeout', () => request.destroy(Object.assign(new Error(), { code: 'ETIMEDOUT' })))
    request.once('error', (error) => reject(unreachableProxy(proxy, error)))
    request.end()
  })
}
