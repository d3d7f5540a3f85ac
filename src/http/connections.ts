import type { Socket } from 'node:net'
import { Agent, buildConnector, type Dispatcher, Pool, ProxyAgent } from 'undici'
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
  const direct = new Agent({ connections, connect: sharedReads(connect) })
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

const READ_BYTES = 64 * 1024
/** No head has more: undici refuses 16 kB of names and values, and each has at least one byte and three around it. */
const MAX_HEAD_BYTES = 80 * 1024

/**
 * The reads of a connection share memory: fresh memory for each makes V8 mark its whole heap every few pages. undici
 * takes a read over at once, but for heads, which it keeps until they are whole.
 */
function sharedReads(options: buildConnector.BuildOptions): buildConnector.connector {
  return (target, callback) => {
    const memory = [Buffer.allocUnsafeSlow(READ_BYTES), Buffer.allocUnsafeSlow(READ_BYTES)] as const
    let next: 0 | 1 = 0
    let socket: Socket | null = null
    let written = 0
    /** Since the last request. */
    let received = 0
    const onread = {
      buffer: () => memory[next],
      callback: (length: number): boolean => {
        const bytes = memory[next].subarray(0, length)
        const { bytesWritten, readableLength } = socket!
        if (bytesWritten !== written) received = 0
        written = bytesWritten
        received += length
        // What was not taken over yet lies in the other one.
        if (received - length < MAX_HEAD_BYTES || readableLength > 0) return socket!.push(Buffer.from(bytes))
        next = next === 0 ? 1 : 0
        return socket!.push(bytes)
      },
    }
    // One read does not pause the socket.
    const shared = { ...options, onread, highWaterMark: 2 * READ_BYTES }
    const connect = buildConnector(shared as buildConnector.BuildOptions)
    connect(target, (...result) => {
      socket = result[1]
      callback(...result)
    })
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
