import { type ClientRequest, Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIPv6 } from 'node:net'
import { Agent, type AgentConnectOpts } from 'agent-base'
import { HttpsProxyAgent } from 'https-proxy-agent'
import { ExportError, isLoopback } from '../core/index.ts'
import { CERTIFICATE_CODE, errorCode, UnreachableError, unreachableAs } from './network-error.ts'

export type HttpProxy = {
  readonly url: URL
  /** Host and port, for messages: the rest of the address may hold a password. */
  readonly host: string
  /** The Proxy-Authorization header; null: none. */
  readonly authorization: string | null
  readonly variable: string
}

/** The proxy for an origin; null: a direct connection. */
export type ProxyOf = (origin: string) => HttpProxy | null

/** A proxy for http alone serves https, too; this machine's hosts use none. @throws ExportError `config`: no address */
export function proxiesOf(env: Readonly<Record<string, string | undefined>>): ProxyOf | null {
  const http = firstSet(env, ['http_proxy', 'HTTP_PROXY'])
  const https = firstSet(env, ['https_proxy', 'HTTPS_PROXY']) ?? http
  if (https === null) return null
  const byProtocol: Readonly<Record<string, HttpProxy | null>> = {
    'http:': http === null ? null : proxyAt(http),
    'https:': proxyAt(https),
  }
  const exceptions = exceptionsIn(firstSet(env, ['no_proxy', 'NO_PROXY'])?.value ?? '')
  return (origin) => {
    const url = new URL(origin)
    if (isLoopback(url.hostname, { subdomains: true }) || exceptions.some((isExcepted) => isExcepted(url)))
      return null
    return byProtocol[url.protocol] ?? null
  }
}

type Variable = { readonly name: string; readonly value: string }

function firstSet(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): Variable | null {
  for (const name of names) {
    const value = env[name]?.trim()
    if (value) return { name, value }
  }
  return null
}

function proxyAt({ name, value }: Variable): HttpProxy {
  // Often written without a scheme, which curl accepts.
  const text = value.includes('://') ? value : `http://${value}`
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw noAddress(name, url?.hostname ?? '')
  return { url, host: url.host, authorization: authorizationOf(url, name), variable: name }
}

function authorizationOf({ username, password, host }: URL, variable: string): string | null {
  if (username === '' && password === '') return null
  try {
    const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    return `Basic ${Buffer.from(user).toString('base64')}`
  } catch {
    throw noAddress(variable, host)
  }
}

/** Only the host of the value is shown: the rest may hold a password. */
function noAddress(variable: string, host: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: `The proxy${host === '' ? '' : ` ${host}`} is no address such as http://proxy.example:3128 or http://user:password@proxy.example:3128`,
    where: `environment variable ${variable}`,
    next: 'Correct the variable (in user and password everything but letters and digits is percent-encoded), or unset it.',
  })
}

/** `acme.com` and `.acme.com` match subdomains, too, `acme.com:8443` one port, `*` all; IPv6 may have brackets. */
function exceptionsIn(list: string): readonly ((url: URL) => boolean)[] {
  const entries = list.split(/[\s,]+/).filter((entry) => entry !== '')
  return entries.map((entry) => {
    if (entry === '*') return () => true
    const [, name = entry, port = null] = ipv6Host(entry) === null ? (/^(.+):(\d+)$/.exec(entry) ?? []) : []
    const host = ipv6Host(name) ?? name.replace(/^\*?\./, '').toLowerCase()
    return ({ hostname, port: own, protocol }) =>
      (hostname === host || hostname.endsWith(`.${host}`)) &&
      (port === null || port === (own || DEFAULT_PORTS[protocol]))
  })
}

/** As in URLs, in its shortest form; null: no address of IPv6. */
function ipv6Host(name: string): string | null {
  const url = `http://[${name.replace(/^\[(.*)\]$/, '$1')}]`
  return URL.canParse(url) ? new URL(url).hostname : null
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }

export function unreachableProxy({ host, url, variable }: HttpProxy, error: Error): ExportError {
  // A connection counts as one when the proxy has responded.
  const code = errorCode(error).replace('HEADERS_TIMEOUT', 'CONNECT_TIMEOUT')
  if (CERTIFICATE_CODE.test(code)) {
    const what = `The certificate of the proxy ${host} is not accepted: ${code}`
    const next = `Check ${variable}; a private certificate authority is made known with NODE_EXTRA_CA_CERTS.`
    return new ExportError({ kind: 'refused', what, where: '', next })
  }
  const what = `The proxy ${host} cannot be used: ${unreachableAs(code, url) ?? 'the connection broke'} (${code})`
  const next = `Check ${variable}, or name the service's host in NO_PROXY; then run again.`
  return new UnreachableError({ kind: 'transient', what, where: '', next })
}

/** Of a proxy that answers CONNECT with another status than 2xx. */
export function refusedBy(
  { host, variable, authorization }: HttpProxy,
  target: string,
  status: number,
): ExportError {
  if (status === 407) {
    const how = authorization === null ? 'requires a user and a' : 'rejects the user or the'
    const what = `The proxy ${host} ${how} password (407)`
    const next = `Put them into ${variable}: http://user:password@${host}`
    return new ExportError({ kind: 'credentials', what, where: '', next })
  }
  const kind = status >= 500 ? 'transient' : 'refused'
  const what = `The proxy ${host} does not connect to ${target}: it responded with ${status}`
  const next = `Have the proxy let ${target} through, or name the host in NO_PROXY; then run again.`
  return new ExportError({ kind, what, where: '', next })
}

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
