import { Agent, type buildConnector, type Dispatcher, Pool, ProxyAgent } from 'undici'
import { ADDRESS_ATTEMPT_MS } from '../core/index.ts'
import { type HttpProxy, type ProxyOf, refusedBy, unreachableProxy } from './proxies.ts'

type ConnectionOptions = {
  readonly connections: number
  readonly connectTimeoutMs: number
  /** null: no host has one. */
  readonly proxyOf: ProxyOf | null
}

export function openConnections({ connections, connectTimeoutMs, proxyOf }: ConnectionOptions) {
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
  const connect = {
    timeout: connectTimeoutMs,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    rejectUnauthorized: true,
  }
  const direct = new Agent({ connections, connect })
  const tunnels = new Map<HttpProxy, ProxyAgent>()
  return {
    dispatch(options: Dispatcher.DispatchOptions & { origin: string }, handler: Dispatcher.DispatchHandler) {
      const proxy = proxyOf?.(options.origin) ?? null
      if (proxy === null) return direct.dispatch(options, handler)
      const tunnel = tunnels.get(proxy) ?? tunnelAgent(proxy, { connections, connect })
      tunnels.set(proxy, tunnel)
      return tunnel.dispatch(options, handler)
    },
    /** Closes every connection, in use or not. */
    async destroy(): Promise<void> {
      await Promise.all([direct, ...tunnels.values()].map((agent) => agent.destroy()))
    },
  }
}

type TunnelOptions = {
  readonly connections: number
  readonly connect: buildConnector.BuildOptions & { readonly timeout: number }
}

/** A proxy's errors are ExportErrors that name its host. The caller, which knows the request, sets their `where`. */
function tunnelAgent(proxy: HttpProxy, { connections, connect }: TunnelOptions): ProxyAgent {
  return new ProxyAgent({
    uri: proxy.url.origin,
    ...(proxy.authorization === null ? {} : { token: proxy.authorization }),
    connections,
    proxyTls: connect,
    requestTls: connect,
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
    throw unreachableProxy(proxy, error as Error)
  }
  const { statusCode, socket } = opened
  if (statusCode >= 200 && statusCode < 300) return { ...opened, statusCode: 200 }
  // The proxy's response is never shown: it may repeat the request.
  socket.on('error', () => {}).destroy()
  throw refusedBy(proxy, path, statusCode)
}
