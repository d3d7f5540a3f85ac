import { isLoopback } from '../../core/index.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Files that the address may name, or a variable. */
const FILES = ['sslrootcert', 'sslcert', 'sslkey']

/** TLS with certificate and host name checked, unless it is here or says otherwise. By itself the driver has none. */
export function withTls(url: string, env: Environment): string {
  const address = new URL(url)
  const { searchParams: parameters } = address
  for (const name of FILES) {
    const path = parameters.get(name) || env[`PG${name.toUpperCase()}`]
    if (path) parameters.set(name, path)
  }
  const mode = parameters.get('sslmode') || (parameters.has('ssl') ? 'require' : '') || env.PGSSLMODE || ''
  const host = parameters.get('host') ?? address.hostname
  // Modes that may fall back to less than TLS count as not set.
  const isUnset = ['', 'allow', 'prefer'].includes(mode)
  const isInClear = mode === 'disable' || (isUnset && (isLoopback(host) || host.startsWith('/')))
  for (const name of ['ssl', 'uselibpqcompat']) parameters.delete(name)
  // The driver reads the files where there is TLS or not.
  for (const name of isInClear ? FILES : []) parameters.delete(name)
  parameters.set('sslmode', isInClear ? 'disable' : mode === 'no-verify' ? mode : 'verify-full')
  return address.href
}

/** Whether the server offers no TLS: the driver's error has no code. */
export function lacksTls(error: unknown): boolean {
  return String(error).includes('The server does not support SSL connections')
}
