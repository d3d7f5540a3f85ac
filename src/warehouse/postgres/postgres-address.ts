import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { ClientConfig } from 'pg'
import { ExportError } from '../../core/index.ts'

/** How to connect to a PostgreSQL server: from its address and the environment. */
type PostgresAddress = {
  /** Of the driver. */
  readonly settings: ClientConfig
  /** A socket to be connected. @param onNoTls called when the server offers no TLS, and the address demands it */
  socket(onNoTls: () => void): Socket
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the TLS parameters of an address. The driver has no secure default for other machines.
 * @throws ExportError `config` when a mode is none, or a file cannot be read
 */
export async function postgresAddress(
  url: string,
  label: string,
  env: Environment,
): Promise<PostgresAddress> {
  const { default: pg } = await import('pg')
  const parsed = new URL(url)
  const take = (name: string): string | null => {
    const value = parsed.searchParams.get(name)
    parsed.searchParams.delete(name)
    return value === '' ? null : value
  }
  const ssl = take('ssl')
  const mode = take('sslmode') ?? (ssl === null ? null : modeOfSsl(ssl)) ?? env.PGSSLMODE ?? ''
  const negotiation = take('sslnegotiation') ?? env.PGSSLNEGOTIATION
  const file = (name: string): string | undefined => take(name) ?? env[`PG${name.toUpperCase()}`]
  const files = { ca: file('sslrootcert'), cert: file('sslcert'), key: file('sslkey') }
  take('uselibpqcompat')
  const plain = parsed.href
  const check = checkOf(mode, () => isThisMachine(new pg.Client({ connectionString: plain }).host), label)
  const settings = { connectionString: plain, application_name: 'spillway' }
  if (check === 'none') return { settings: { ...settings, ssl: false }, socket: () => new Socket() }
  const tls: ConnectionOptions = { rejectUnauthorized: check === 'full' }
  // `system`: the certificates of Node.js, which are the default.
  if (files.ca !== undefined && files.ca !== 'system') tls.ca = await read(files.ca, 'sslrootcert')
  if (files.cert !== undefined) tls.cert = await read(files.cert, 'sslcert')
  if (files.key !== undefined) tls.key = await read(files.key, 'sslkey')
  const direct = negotiation === 'direct' ? { sslnegotiation: 'direct' as const } : null
  return {
    settings: { ...settings, ssl: tls, ...direct },
    socket(onNoTls) {
      const socket = new Socket()
      // A server responds to the request for TLS with one byte.
      if (direct === null)
        socket.once('data', (response: Buffer) => {
          if (response[0] === 'N'.charCodeAt(0)) onNoTls()
        })
      return socket
    },
  }
}

/** `full`: certificate and host name are checked; `encrypt`: neither is; `none`: in clear. */
type Check = 'full' | 'encrypt' | 'none'

/** Modes that fall back to less than TLS count as not set. */
function checkOf(mode: string, isLocal: () => boolean, label: string): Check {
  switch (mode) {
    case '':
    case 'allow':
    case 'prefer':
      return isLocal() ? 'none' : 'full'
    case 'disable':
      return 'none'
    case 'no-verify':
      return 'encrypt'
    case 'require':
    case 'verify-ca':
    case 'verify-full':
      return 'full'
    default:
      throw new ExportError({
        kind: 'config',
        what: 'The sslmode of the address, or PGSSLMODE, is not one of those that there are',
        where: label,
        next: 'Choose disable, no-verify, require, verify-ca or verify-full (the last three check certificate and host name), or leave it out.',
      })
  }
}

/** The driver's own parameter `ssl` as an sslmode. */
function modeOfSsl(ssl: string): string {
  if (ssl === 'true' || ssl === '1') return 'require'
  return ssl === 'false' || ssl === '0' ? 'disable' : ssl
}

/** Whether the host is this machine. */
function isThisMachine(host: string): boolean {
  return host.startsWith('/') || host === 'localhost' || host === '::1' || /^127(?:\.\d+){3}$/.test(host)
}

async function read(path: string, parameter: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new ExportError({
      kind: 'config',
      what: `${parameter} cannot be read`,
      where: path,
      next: 'Name a file in PEM.',
      cause,
    })
  }
}
