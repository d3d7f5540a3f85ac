import { type ClientRequest, Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIPv6 } from 'node:net'
import { Agent, type AgentConnectOpts } from 'agent-base'
import { HttpsProxyAgent } from 'https-proxy-agent'
import { type ProxyOf, proxiesOf, refusedBy, unreachableProxy } from './proxies.ts'

/** For SDKs, which connect by Node.js's own means; null: no proxy. @throws ExportError `config`: no address */
export function proxyAgents(connections: number) {
  const proxyOf = proxiesOf(process.env)
  if (proxyOf === null) return null
  const agent = new ProxiedAgent(proxyOf, connections)
  return { httpAgent: agent, httpsAgent: agent }
}

// Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn verification off.
const VERIFIED = { rejectUnauthorized: true }

class ProxiedAgent extends Agent {
  readonly #proxyOf: ProxyOf
  readonly #http: HttpAgent
  readonly #https: HttpsAgent

  constructor(proxyOf: ProxyOf, connections: number) {
    const options = { keepAlive: true, maxSockets: connections, noDelay: true }
    super(options)
    this.#proxyOf = proxyOf
    this.#http = new HttpAgent(options)
    this.#https = new HttpsAgent({ ...options, ...VERIFIED })
  }

  async connect(request: ClientRequest, to: AgentConnectOpts) {
    const { host, port, secureEndpoint } = to
    const target = `${isIPv6(host ?? '') ? `[${host}]` : host}:${port}`
    const proxy = this.#proxyOf(`${secureEndpoint ? 'https' : 'http'}://${target}`)
    if (proxy === null) return secureEndpoint ? this.#https : this.#http
    // The package hands a proxy's refusal to the client as if it were the target's response.
    request.once('proxyConnect', ({ statusCode }: { readonly statusCode: number }) => {
      if (statusCode !== 200) request.destroy(refusedBy(proxy, target, statusCode))
    })
    try {
      return await new HttpsProxyAgent(proxy.url, VERIFIED).connect(request, { ...to, ...VERIFIED })
    } catch (error) {
      throw unreachableProxy(proxy, error as Error)
    }
  }
}
