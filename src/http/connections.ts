import { Agent, DecoratorHandler, type Dispatcher, type ProxyAgent } from 'undici'
import { ADDRESS_ATTEMPT_MS } from '../core/index.ts'
import type { HttpProxy, ProxyOf } from './proxies.ts'
import { tunnelAgent } from './tunnel.ts'

type ConnectionOptions = {
  readonly connections: number
  readonly connectTimeoutMs: number
  readonly maxResponseBytes: number
  /** null: no host has one. */
  readonly proxyOf: ProxyOf | null
}

/** The dispatcher for an origin, which calls a function just before it writes a request; and the end of all connections. */
export type Connections = {
  (origin: string, onWrite: () => void): Dispatcher
  /** Closes every connection, in use or not. */
  destroy(): Promise<void>
}

/** Keep-alive connections, direct or through the proxy of a host. */
export function openConnections({ proxyOf, ...options }: ConnectionOptions): Connections {
  // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
  const connect = {
    timeout: options.connectTimeoutMs,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    rejectUnauthorized: true,
  }
  const { connections, maxResponseBytes: maxResponseSize } = options
  const direct = new Agent({ connections, connect, maxResponseSize })
  const tunnels = new Map<HttpProxy, ProxyAgent>()
  const agentFor = (origin: string): Dispatcher => {
    const proxy = proxyOf?.(origin) ?? null
    if (proxy === null) return direct
    const tunnel = tunnels.get(proxy) ?? tunnelAgent(proxy, { connections, connect, maxResponseSize })
    tunnels.set(proxy, tunnel)
    return tunnel
  }
  return Object.assign(
    (origin: string, onWrite: () => void): Dispatcher =>
      agentFor(origin).compose(
        (dispatch) => (request, handler) => dispatch(request, new Asking(handler, onWrite)),
      ),
    {
      async destroy() {
        await Promise.all([direct, ...tunnels.values()].map((agent) => agent.destroy()))
      },
    },
  )
}

/** Asks just before a request is written: if that throws, nothing is written and the connection stays open. */
class Asking extends DecoratorHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #onWrite: () => void

  constructor(handler: Dispatcher.DispatchHandler, onWrite: () => void) {
    super(handler)
    this.#handler = handler
    this.#onWrite = onWrite
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#onWrite()
    this.#handler.onRequestStart?.(controller, context)
  }
}
