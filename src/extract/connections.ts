import { Agent, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { ExportError } from '../core/index.ts'
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

const PROXY_VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY']

/**
 * Keep-alive connections, straight or through the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name;
 * hosts of this machine never go through a proxy.
 * @throws ExportError `config` when a proxy variable holds no address
 */
export function openConnections(options: { connections: number; connectTimeoutMs: number }): Connections {
  // Said outright, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
  const connect = { timeout: options.connectTimeoutMs, rejectUnauthorized: true }
  const direct = new Agent({ connections: options.connections, connect: withoutContinue(connect) })
  const variable = PROXY_VARIABLES.find((name) => (process.env[name] ?? '') !== '')
  if (variable === undefined) return direct
  try {
    const proxied = new EnvHttpProxyAgent({
      connections: options.connections,
      connect,
      requestTls: connect,
      proxyTls: connect,
    })
    return {
      dispatch: (options, handler) =>
        (isLoopback(new URL(options.origin).hostname) ? direct : proxied).dispatch(options, handler),
      destroy: async () => {
        await Promise.all([direct.destroy(), proxied.destroy()])
      },
    }
  } catch {
    throw new ExportError(
      'config',
      'The proxy is no address such as http://proxy.example:3128',
      `environment variable ${variable}`,
      'Correct the variable or unset it.',
    )
  }
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname.startsWith('127.') ||
    hostname === '[::1]'
  )
}
