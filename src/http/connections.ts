import { Agent, type Dispatcher, type ProxyAgent } from 'undici'
import { ADDRESS_ATTEMPT_MS } from '../core/index.ts'
import type { HttpProxy, ProxyOf } from './proxies.ts'
import { tunnelAgent } from './tunnel.ts'

type ConnectionOptions = {
  readonly connections: number
  readonly connectTimeoutMs: number
  /** null: no host has one. */
  readonly proxyOf: ProxyOf | null
}

/** The part of a dispatcher that is used here. */
export type Connections = {
  dispatch(
    options: Dispatcher.DispatchOptions & { origin: string },
    handler: Dispatcher.DispatchHandler,
  ): boolean
  /** Closes every connection, in use or not. */
  destroy(): Promise<void>
}

/** Keep-alive connections, direct or through the proxy of a host. */
export function openConnections({ connections, connectTimeoutMs, proxyOf }: ConnectionOptions): Connections {
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
  const connect = {
    timeout: connectTimeoutMs,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    rejectUnauthorized: true,
  }
  const direct = new Agent({ connections, connect })
  const tunnels = new Map<HttpProxy, ProxyAgent>()
  return {
    dispatch(options, handler) {
      const proxy = proxyOf?.(options.origin) ?? null
      if (proxy === null) return direct.dispatch(options, handler)
      const tunnel = tunnels.get(proxy) ?? tunnelAgent(proxy, { connections, connect })
      tunnels.set(proxy, tunnel)
      return tunnel.dispatch(options, handler)
    },
    async destroy() {
      await Promise.all([direct, ...tunnels.values()].map((agent) => agent.destroy()))
    },
  }
}
