import { readFile } from 'node:fs/promises'
import type { ConnectionOptions } from 'node:tls'
import { ExportError } from '../../core/index.ts'

/** How to connect to a PostgreSQL server: from its address and the environment. */
type PostgresAddress = {
  /** Without parameters of TLS. */
  readonly url: string
  /** false: in clear. */
  readonly tls: ConnectionOptions | false
  readonly startsWithTls: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the TLS parameters of an address. The driver has no secure default for other machines.
 * @param hostOf the host that the driver makes of an address without these
 * @throws ExportError `config` when a mode is none, or a file cannot be read
 */
export async function postgresAddress(
  url: string,
  label: string,
  env: Environment,
  hostOf: (url: string) => string,
): Promise<PostgresAddress> {
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
  const check = checkOf(mode, () => isThisMachine(hostOf(plain)), label)
  if (check === 'none') return { url: plain, tls: false, startsWithTls: false }
  const tls: ConnectionOptions = { rejectUnauthorized: check === 'full' }
  // `system`: the certificates of Node.js, which are the default.
  if (files.ca !== undefined && files.ca !== 'system') tls.ca = await read(files.ca, 'sslrootcert')
  if (files.cert !== undefined) tls.cert = await read(files.cert, 'sslcert')
  if (files.key !== undefined) tls.key = await read(files.key, 'sslkey')
  return { url: plain, tls, startsWithTls: negotiation === 'direct' }
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
