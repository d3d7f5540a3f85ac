import { Agent, type buildConnector, type Dispatcher } from 'undici'
import { type ProxyOf, proxiesOf } from './proxies.ts'
import { withReadBuffer } from './read-buffer.ts'
import { withoutContinue } from './without-continue.ts'

/** As much of a dispatcher as is needed here. */
export type Connections = {
  dispatch(
    options: Dispatcher.DispatchOptions & { origin: string },
    handler: Dispatcher.DispatchHandler,
  ): boolean
  /** Closes every connection, in use or not. */
  destroy(): Promise<void>
}

/**
 * Keep-alive connections, straight or through the proxy that the environment names for a host.
 * @throws ExportError `config` when a proxy variable holds no address
 */
export function openConnections(options: { connections: number; connectTimeoutMs: number }): Connections {
  const { connections } = options
  // Said outright, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
  const connect = { timeout: options.connectTimeoutMs, rejectUnauthorized: true }
  const direct = new Agent({ connections, connect: withoutContinue(withReadBuffer(connect)) })
  const proxyOf = proxiesOf(process.env)
  if (proxyOf === null) return direct
  const closing = new AbortController()
  const proxied = new Agent({ connections, connect: tunnelConnector(proxyOf, connect, closing.signal) })
  return {
    dispatch: (options, handler) =>
      (proxyOf(options.origin) === null ? direct : proxied).dispatch(options, handler),
    async destroy() {
      // A proxy that never answers would hold the process up.
      closing.abort()
      await Promise.all([direct.destroy(), proxied.destroy()])
    },
  }
}

/** Connects through a proxy; not by undici's own agent, whose errors do not say what of it went wrong, and where. */
function tunnelConnector(
  proxyOf: ProxyOf,
  connect: buildConnector.BuildOptions & { timeout: number },
  signal: AbortSignal,
): buildConnector.connector {
  const secure = withReadBuffer(connect)
  return (options, callback) => {
    const { protocol, hostname } = options
    const port = options.port || (protocol === 'https:' ? '443' : '80')
    const proxy = proxyOf(`${protocol}//${hostname}:${port}`)
    const open = async () => {
      // Loaded by those who have a proxy.
      const { openTunnel } = await import('./tunnel.ts')
      return openTunnel(proxy!, `${hostname}:${port}`, { timeoutMs: connect.timeout, signal })
    }
    open().then(
      (socket) => {
        if (protocol === 'https:') secure({ ...options, httpSocket: socket }, callback)
        else callback(null, socket)
      },
      (error: Error) => callback(error, null),
    )
  }
}
