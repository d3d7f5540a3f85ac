import { ExportError, isLoopback } from '../../core/index.ts'

/** A way out of the network that somebody else keeps. */
export type HttpProxy = {
  readonly url: URL
  /** Host and port, for messages: what else is in the address may be a password. */
  readonly host: string
  /** What it knows us by; null: nothing. */
  readonly authorization: string | null
  /** The environment variable that names it. */
  readonly variable: string
}

/** The proxy for an origin; null: straight there. */
export type ProxyOf = (origin: string) => HttpProxy | null

/**
 * The proxies that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name, in lower case as well, which goes first. Where there
 * is one for http only it serves https too. Hosts of this machine never go through a proxy.
 * @returns null when no variable names one
 * @throws ExportError `config` when a variable holds no address
 */
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
  // Often written without a scheme, as curl takes it.
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

/** Of the value only the host is shown: a password may be in it. */
function noAddress(variable: string, host: string): ExportError {
  return new ExportError(
    'config',
    `The proxy${host === '' ? '' : ` ${host}`} is no address such as http://proxy.example:3128 or http://user:password@proxy.example:3128`,
    `environment variable ${variable}`,
    'Correct the variable (in user and password everything but letters and digits is percent-encoded) or unset it.',
  )
}

/** `acme.com` and `.acme.com` mean the host and those below it, `acme.com:8443` one port of theirs, `*` everything. */
function exceptionsIn(list: string): readonly ((url: URL) => boolean)[] {
  const entries = list.split(/[\s,]+/).filter((entry) => entry !== '')
  return entries.map((entry) => {
    if (entry === '*') return () => true
    const [, name = entry, port = null] = /^(.+):(\d+)$/.exec(entry) ?? []
    const host = name.replace(/^\*?\./, '').toLowerCase()
    return ({ hostname, port: own, protocol }) =>
      (hostname === host || hostname.endsWith(`.${host}`)) &&
      (port === null || port === (own || DEFAULT_PORTS[protocol]))
  })
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' }
