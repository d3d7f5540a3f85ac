import { stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { Client } from 'pg'
import { codeOf, ExportError, isLoopback, learnSecret } from '../../core/index.ts'
import { LEDGER } from '../table/table.ts'

export type PostgresConnection = {
  readonly client: Client
  /** Runs a function that queries the server. @throws ExportError that quotes no row, whatever went wrong */
  guarded<T>(work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

const CONNECT_MS = 30_000

/**
 * Connects as {@link withTls} says; the password is that of PGPASSWORD or ~/.pgpass. @param label may be shown
 * @throws ExportError `credentials`: user or password are refused; `target`: no way there; `config`: a wrong address
 */
export async function connectPostgres(
  url: string,
  label: string,
  stop: AbortSignal,
): Promise<PostgresConnection> {
  const { default: pg } = await import('pg')
  learnSecret(process.env.PGPASSWORD ?? '')
  const socket = new Socket()
  const client = clientFor(pg.Client, url, label, socket)
  // With a connection string, the driver ignores this option of the constructor.
  Object.assign(client, { password: () => findPassword(client, label) })
  // With which the server ended the connection, while no query was in progress: the next one does not know why.
  let fatal: Error | null = null
  client.on('error', (error) => {
    if ('severity' in error) fatal ??= error
  })
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw error instanceof ExportError ? error : refusal(label, fatal ?? error, socket.closed, client)
    }
  }
  // The end of the connection ends every wait: for a response, for a lock, for the connection itself.
  const abort = (): void => void socket.destroy()
  stop.throwIfAborted()
  stop.addEventListener('abort', abort, { once: true })
  const noResponse = Object.assign(new Error(), { code: 'ETIMEDOUT' })
  const timer = setTimeout(() => socket.destroy(noResponse), CONNECT_MS)
  try {
    await guarded(() => client.connect())
  } catch (error) {
    stop.removeEventListener('abort', abort)
    // A half-open connection would keep the process alive until the server closes it.
    abort()
    stop.throwIfAborted()
    throw error
  } finally {
    clearTimeout(timer)
  }
  return {
    client,
    guarded,
    async close() {
      stop.removeEventListener('abort', abort)
      await client.end().catch(() => {})
    },
  }
}

/** @throws ExportError `config` when a file that the address names cannot be read */
function clientFor(Driver: typeof Client, url: string, label: string, socket: Socket): Client {
  try {
    const connectionString = withTls(url, process.env)
    return new Driver({ connectionString, application_name: 'spillway', stream: () => socket })
  } catch (cause) {
    throw new ExportError({
      kind: 'config',
      what: `A file that the address or a variable names cannot be read (${codeOf(cause)})`,
      where: label,
      next: 'Correct sslrootcert, sslcert and sslkey: files in PEM.',
      cause,
    })
  }
}

/** @throws ExportError `credentials` when there is none */
async function findPassword(connection: Client, label: string): Promise<string> {
  const given = process.env.PGPASSWORD
  if (given !== undefined && given !== '') return given
  // @ts-expect-error the package brings no declarations
  const { default: pgpass }: { readonly default: PgPass } = await import('pgpass')
  // By itself it would write to standard error.
  pgpass.warnTo(new Writable({ write: (_chunk, _encoding, done) => done() }))
  const { host, port, user, database } = connection
  const found = await new Promise<string | undefined>((resolve) =>
    pgpass({ host, port, user, database }, resolve),
  )
  if (found !== undefined) {
    learnSecret(found)
    return found
  }
  throw new ExportError({
    kind: 'credentials',
    what: 'PostgreSQL asks for the password of the user, and none is set',
    where: label,
    next: (await isOpenToOthers(passFile()))
      ? `${passFile()} is not used, since others may read it: chmod 600. Or set PGPASSWORD.`
      : 'Set PGPASSWORD, or a line in ~/.pgpass.',
  })
}

type PgPass = {
  (connection: object, done: (password: string | undefined) => void): void
  warnTo(stream: Writable): void
}

function passFile(): string {
  return process.env.PGPASSFILE || join(homedir(), '.pgpass')
}

async function isOpenToOthers(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found?.isFile() === true && (found.mode & 0o077) !== 0
}

function constraintOf(error: unknown): string {
  const name = error instanceof Error && 'constraint' in error ? error.constraint : null
  return typeof name === 'string' && name !== '' ? `, ${name}` : ''
}

/** The server's messages may quote a row, so errors are shown by their codes. */
function refusal(label: string, error: unknown, isGone: boolean, { host, port }: Client): ExportError {
  const code = codeOf(error)
  const table = error instanceof Error && 'table' in error ? error.table : undefined
  const found = lacksTls(error)
    ? NO_TLS
    : code.startsWith('23') && table === LEDGER
      ? LEDGER_CHANGED
      : code === '23514' && table !== undefined && constraintOf(error) === ''
        ? NO_PARTITION
        : MEANINGS.find(([codes]) => codes.test(code))
  const [, what, next, kind = 'target'] =
    found ??
    (isGone ? ENDED : ([null, `PostgreSQL refuses${code === '' ? '' : ` (${code})`}`, CHECK_SERVER] as const))
  return new ExportError({
    kind,
    what: what
      .replace('{server}', host.startsWith('/') ? host : `${host}:${port}`)
      .replace('{code}', code)
      .replace('{constraint}', constraintOf(error)),
    where: label,
    next,
    ...(error instanceof Error && 'severity' in error ? undefined : { cause: error }),
  })
}

type Meaning = readonly [
  codes: RegExp,
  what: string,
  next: string,
  kind?: 'target' | 'credentials' | 'config',
]

const AGAIN = 'Nothing was loaded partially; load again when it is available.'
const CHECK_SERVER = 'Check the log of the server, then load again; nothing was loaded partially.'
const TRUST =
  'Name the file of the authority that signed it with sslrootcert=<file> in the address, or in PGSSLROOTCERT; sslmode=no-verify encrypts without checking.'
const NO_TLS: Meaning = [
  /^$/,
  'PostgreSQL at {server} offers no TLS, and nothing is sent to another machine in clear',
  'Turn TLS on there (ssl = on), or add ?sslmode=disable to the address if the network between is trusted.',
]
const LEDGER_CHANGED: Meaning = [
  /^23/,
  `${LEDGER} took no entry ({code}{constraint}): something else writes to it, or has changed it`,
  'Leave it to the loads: it says what the table holds. Nothing was loaded partially.',
]
/** A CHECK constraint of the same code has a name, and the error of a trigger names no table. */
const NO_PARTITION: Meaning = [
  /^$/,
  'A row belongs to no partition of the table ({code})',
  'Create the partition for it, or one for all others (CREATE TABLE … PARTITION OF … DEFAULT), then load again; nothing was loaded partially.',
]
const ENDED: Meaning = [/^$/, 'The connection to PostgreSQL ended', AGAIN]

/** SQLSTATE of the server, or codes of the system and of TLS. */
const MEANINGS: readonly Meaning[] = [
  [
    /^28P01$/,
    'PostgreSQL refuses the user or the password',
    'Set PGPASSWORD, or a line in ~/.pgpass.',
    'credentials',
  ],
  [
    /^28/,
    'PostgreSQL does not let this user in from here ({code})',
    'Look at the user in the address, at sslmode, and at pg_hba.conf on the server.',
    'credentials',
  ],
  [/^3D000$/, 'There is no such database', 'Create it, or name another one in the address.'],
  [
    /^42501$/,
    'The user may not do that, or row-level security would hide rows of the table from it',
    'Grant it the right to create and write the tables. It has to see all their rows: let it own them without FORCE ROW LEVEL SECURITY, or give it BYPASSRLS.',
  ],
  [
    /^23/,
    'The rows break a constraint of the table ({code}{constraint})',
    'Drop the constraint, or load into another --table; nothing was loaded partially.',
  ],
  [
    /^(?:25P0[34]|55P03|57014|57P05)$/,
    'PostgreSQL ended a statement or a session that took too long, or somebody did ({code})',
    'Raise the timeouts of this role (ALTER ROLE … SET lock_timeout, statement_timeout …), then load again; nothing was loaded partially.',
  ],
  [
    /^(?:ENOTFOUND|EAI_\w+|ECONNREFUSED|ETIMEDOUT|E(?:HOST|NET)(?:UNREACH|DOWN)|ENOENT|EACCES|ENOTDIR)$/,
    'PostgreSQL cannot be reached at {server} ({code})',
    'Look at host and port in the address (or the folder of its socket), at name resolution and firewalls, and whether the server is up.',
  ],
  [
    /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+|ERR_(?:SSL|TLS|OSSL)_\w+|EPROTO)$/,
    'The certificate of PostgreSQL at {server} is not trusted ({code})',
    TRUST,
  ],
  [/^(?:57P0|08|ECONNRESET|EPIPE|ERR_STREAM_PREMATURE_CLOSE)/, 'The connection to PostgreSQL ended', AGAIN],
]

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
