import { type buildConnector, type Dispatcher, Pool, ProxyAgent } from 'undici'
import { ExportError } from '../core/index.ts'
import { CERTIFICATE_CODE, errorCode, UnreachableError, unreachableAs } from './network-error.ts'
import type { HttpProxy } from './proxies.ts'

type TunnelOptions = {
  readonly connections: number
  readonly connect: buildConnector.BuildOptions & { readonly timeout: number }
  /** Adds to what connects to a service. */
  wrap(connect: buildConnector.connector): buildConnector.connector
}

/**
 * Connects to services through a proxy, by the method CONNECT. Its errors are ExportErrors that name the proxy's host:
 * `transient`, `credentials` (407), `refused`. The caller, which knows the request, sets their `where`.
 */
export function tunnelAgent(proxy: HttpProxy, { connections, connect, wrap }: TunnelOptions): ProxyAgent {
  return new ProxyAgent({
    uri: proxy.url.origin,
    ...(proxy.authorization === null ? {} : { token: proxy.authorization }),
    connections,
    proxyTls: connect,
    requestTls: connect,
    factory: (origin, options: Pool.Options) =>
      new Pool(origin, { ...options, connect: wrap(options.connect as buildConnector.connector) }),
    clientFactory: (url, options) => {
      const pool = new Pool(url, { ...options, headersTimeout: connect.timeout })
      const open = pool.connect.bind(pool)
      return Object.assign(pool, { connect: (to: Dispatcher.ConnectOptions) => tunnel(proxy, to, open) })
    },
  })
}

/** undici's own errors name neither the proxy nor its status, and the connection that failed may be the service's. */
async function tunnel(
  proxy: HttpProxy,
  { path, headers }: Dispatcher.ConnectOptions,
  open: (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData>,
): Promise<Dispatcher.ConnectData> {
  let opened: Dispatcher.ConnectData
  try {
    opened = await open({ origin: proxy.url.origin, path, headers: { ...headers, host: path } })
  } catch (error) {
    throw unreachable(proxy, error as Error)
  }
  const { statusCode, socket } = opened
  if (statusCode >= 200 && statusCode < 300) return { ...opened, statusCode: 200 }
  // The proxy's response is never shown: it may repeat the request.
  socket.on('error', () => {}).destroy()
  throw refusal(proxy, path, statusCode)
}

function unreachable({ host, url, variable }: HttpProxy, error: Error): ExportError {
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

function refusal({ host, variable, authorization }: HttpProxy, target: string, status: number): ExportError {
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
