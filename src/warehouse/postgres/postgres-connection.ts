import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { Client } from 'pg'
import { codeOf, ExportError, learnSecret } from '../../core/index.ts'
import { LEDGER } from '../table/table.ts'
import { postgresAddress } from './postgres-address.ts'

export type PostgresConnection = {
  readonly client: Client
  /** Runs a function that queries the server. @throws ExportError that quotes no row, whatever went wrong */
  guarded<T>(work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** What is known of the server beside the error of a query. */
type Server = {
  lacksTls: boolean
  isGone: boolean
  /** With which it ended the connection, while no query was in progress. */
  fatal: Error | null
}

/** The longest wait for a connection. */
const CONNECT_MS = 30_000

/**
 * Connects to PostgreSQL: over TLS, with the server's certificate checked, unless it is on this machine or the address
 * says otherwise. The password comes from PGPASSWORD or ~/.pgpass.
 * @param label the address as it may be shown
 * @throws ExportError `credentials` when user or password are refused, `target` when there is no way there, `config`
 *   when the address makes no sense; the signal's reason when it aborts
 */
export async function connectPostgres(
  url: string,
  label: string,
  stop: AbortSignal,
): Promise<PostgresConnection> {
  const { default: pg } = await import('pg')
  learnSecret(process.env.PGPASSWORD ?? '')
  const address = await postgresAddress(url, label, process.env)
  const server: Server = { lacksTls: false, isGone: false, fatal: null }
  const socket = address.socket(() => {
    server.lacksTls = true
  })
  socket.once('close', () => {
    server.isGone = true
  })
  const client: Client = new pg.Client({ ...address.settings, stream: () => socket })
  // With a connection string, the driver ignores this option of the constructor.
  Object.assign(client, { password: () => findPassword(client, label) })
  // A broken connection fails the current query, or the next one, which then does not know why. It must not end the
  // process.
  client.on('error', (error) => {
    if ('severity' in error) server.fatal ??= error
  })
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw error instanceof ExportError ? error : refusal(label, server.fatal ?? error, server, client)
    }
  }
  // The end of the connection ends every wait: for a response, for a lock, for the connection itself.
  const abort = (): void => void socket.destroy()
  stop.throwIfAborted()
  stop.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => socket.destroy(noResponse()), CONNECT_MS)
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

function noResponse(): Error {
  return Object.assign(new Error(), { code: 'ETIMEDOUT' })
}

/** @throws ExportError `credentials` when there is none */
async function findPassword(connection: Client, label: string): Promise<string> {
  const given = process.env.PGPASSWORD
  if (given !== undefined && given !== '') return given
  const { default: pgpass } = await import('pgpass')
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

function tableOf(error: unknown): unknown {
  return error instanceof Error && 'table' in error ? error.table : null
}

/** The server's messages may quote a row, so errors are shown by their codes. */
function refusal(
  label: string,
  error: unknown,
  { lacksTls, isGone }: Server,
  { host, port }: Client,
): ExportError {
  const code = codeOf(error)
  const found = lacksTls
    ? NO_TLS
    : code.startsWith('23') && tableOf(error) === LEDGER
      ? LEDGER_CHANGED
      : MEANINGS.find(([codes]) => codes.test(code))
  const [, what, next, kind = 'target'] =
    found ??
    (isGone ? ENDED : ([null, `PostgreSQL refuses${code === '' ? '' : ` (${code})`}`, CHECK_SERVER] as const))
  return new ExportError({
    kind,
    what: what
      .replace('{server}', host.startsWith('/') ? host : `${host}:${port}`)
      .replace('{host}', host)
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
const ENDED: Meaning = [/^$/, 'The connection to PostgreSQL ended', AGAIN]

/** What a setting of the role, the database or the server does not allow. */
function limit(code: string, setting: string, what: string): Meaning {
  return [
    new RegExp(`^${code}$`),
    `${what} ${setting} ({code})`,
    `Raise ${setting} for this role (ALTER ROLE … SET ${setting}), then load again; nothing was loaded partially.`,
  ]
}

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
  [/^3F000$/, 'There is no schema that tables could be made in', 'Name one with --schema.'],
  [
    /^42501$/,
    'The user may not do that, or row-level security would hide rows of the table from it',
    'Grant it the right to create and write the tables. It has to see all their rows: let it own them without FORCE ROW LEVEL SECURITY, or give it BYPASSRLS.',
  ],
  [
    /^25006$/,
    'PostgreSQL takes no changes here: the server is a standby, or the database or the role is read-only ({code})',
    'Name the primary server in the address, or look at default_transaction_read_only.',
  ],
  [
    /^22P05$/,
    'The encoding of the database lacks a character of the rows ({code})',
    'Load into a database with the encoding UTF8; nothing was loaded partially.',
  ],
  [
    /^23/,
    'The rows break a constraint of the table ({code}{constraint})',
    'Drop the constraint, or load into another --table; nothing was loaded partially.',
  ],
  [
    /^54000$/,
    'A value is too long for an index of the table ({code})',
    'Drop the index, or make one USING hash; nothing was loaded partially.',
  ],
  [
    /^55000$/,
    'The table is replicated and does not say how a row is found, so that none can be deleted ({code})',
    'ALTER TABLE … REPLICA IDENTITY FULL, then load again; nothing was changed.',
  ],
  limit(
    '57014',
    'statement_timeout',
    'PostgreSQL cancelled a statement: somebody did, or it took longer than',
  ),
  limit('55P03', 'lock_timeout', 'Another session has the table or a row in use, for longer than'),
  limit(
    '25P03',
    'idle_in_transaction_session_timeout',
    'A transaction waited for its next statement for longer than',
  ),
  limit('25P04', 'transaction_timeout', 'A transaction took longer than'),
  limit('57P05', 'idle_session_timeout', 'Fetching shards took longer than'),
  [/^57P03$/, 'PostgreSQL is starting up or shutting down', AGAIN],
  [/^53/, 'PostgreSQL is out of room, memory or connections', AGAIN],
  [
    /^(?:ENOTFOUND|EAI_\w+|ECONNREFUSED|ETIMEDOUT|E(?:HOST|NET)(?:UNREACH|DOWN)|ENOENT|EACCES|ENOTDIR)$/,
    'PostgreSQL cannot be reached at {server} ({code})',
    'Look at host and port in the address (or the folder of its socket), at name resolution and firewalls, and whether the server is up.',
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    'The certificate of PostgreSQL is for another host than {host}',
    'Name the host as the certificate does; sslmode=no-verify encrypts without checking.',
  ],
  [/^CERT_HAS_EXPIRED$/, 'The certificate of PostgreSQL at {server} has expired', 'Have it renewed.'],
  [
    /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+)$/,
    'The certificate of PostgreSQL at {server} is not trusted ({code})',
    TRUST,
  ],
  [
    /^(?:ERR_(?:SSL|TLS|OSSL)_\w+|EPROTO)$/,
    'The TLS handshake with PostgreSQL at {server} failed ({code})',
    'Look at the versions of TLS that the server takes, and at sslcert and sslkey if they are given.',
  ],
  [/^(?:57P0|08|ECONNRESET|EPIPE|ERR_STREAM_PREMATURE_CLOSE)/, 'The connection to PostgreSQL ended', AGAIN],
]
