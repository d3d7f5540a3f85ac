import type { Pool, PoolClient, PoolConfig } from 'pg'
import { type Clock, ExportError, learnSecret } from '../core/index.ts'
import { MIGRATIONS, SCHEMA } from './schema.ts'

export type Row = Readonly<Record<string, unknown>>

/** The database that workers meet in. */
export type Database = {
  /** Its address as it may be shown. */
  readonly label: string
  /** One statement. @throws ExportError `target` when there is no answer, or a refusal */
  query(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /**
   * The same for one that may be carried out twice; waits for as long as the database is away.
   * @throws the signal's reason when it aborts
   */
  insist(sql: string, values: readonly unknown[], signal: AbortSignal): Promise<readonly Row[]>
  /** Several, all of them or none. */
  transaction<T>(work: (client: PoolClient) => Promise<T>): Promise<T>
  /** Hears what is told under a name, from now on until the signal aborts; what is told meanwhile may be lost. */
  listen(channel: string, hear: (message: string) => void, signal: AbortSignal): void
  close(): Promise<void>
}

export const DATABASE_VARIABLE = 'SPILLWAY_DATABASE_URL'

/** A statement that gets no answer for so long is given up: the way there may be cut without a word. */
const ANSWER_MS = 10_000
const CONNECT_MS = 5_000
const AGAIN_MS = 1_000

/**
 * @param url of the environment; the password may stand in it, in PGPASSWORD or in ~/.pgpass
 * @param connections at a time
 * @throws ExportError `config` when it is no address of a PostgreSQL database
 */
export async function openDatabase(
  url: string | null,
  { clock, connections, warn }: { clock: Clock; connections: number; warn: (message: string) => void },
): Promise<Database> {
  const { settings, label } = settingsOf(url)
  const { default: pg } = await import('pg')
  const pool: Pool = new pg.Pool({ ...settings, max: connections })
  // Of a connection that breaks while nobody uses it nobody needs to know.
  pool.on('error', () => {})
  const attempt = async (sql: string, values: readonly unknown[]): Promise<readonly Row[]> =>
    (await pool.query(sql, [...values])).rows as readonly Row[]

  return {
    label,
    async query(sql, values = []) {
      try {
        return await attempt(sql, values)
      } catch (error) {
        throw refusal(label, error)
      }
    },
    async insist(sql, values, signal) {
      for (let isTold = false; ; ) {
        signal.throwIfAborted()
        try {
          return await attempt(sql, values)
        } catch (error) {
          if (!isAway(error)) throw refusal(label, error)
          if (!isTold) warn(`the database ${label} does not answer; nothing is committed until it does`)
          isTold = true
          await clock.sleep(AGAIN_MS, signal)
        }
      }
    },
    async transaction(work) {
      try {
        const client = await pool.connect()
        let failed = false
        try {
          await client.query('BEGIN')
          const result = await work(client)
          await client.query('COMMIT')
          return result
        } catch (error) {
          failed = true
          throw error
        } finally {
          // What a failed transaction leaves goes with its connection.
          client.release(failed)
        }
      } catch (error) {
        throw refusal(label, error)
      }
    },
    listen(channel, hear, signal) {
      void hearFor(channel, hear, signal)
    },
    close: () => pool.end(),
  }

  async function hearFor(
    channel: string,
    hear: (message: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      const client = new pg.Client({ ...settings, query_timeout: 0 })
      const gone = new Promise<void>((resolve) => {
        client.on('error', () => resolve())
        client.on('end', () => resolve())
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
      client.on('notification', ({ payload = '' }) => hear(payload))
      try {
        await client.connect()
        await client.query(`LISTEN ${channel}`)
        await gone
      } catch {
        // It is away; what counts is asked for in other ways as well.
      } finally {
        await client.end().catch(() => {})
      }
      await clock.sleep(AGAIN_MS, signal).catch(() => {})
    }
  }
}

function settingsOf(url: string | null): { settings: PoolConfig; label: string } {
  const parsed = url !== null && URL.canParse(url) ? new URL(url) : null
  if (url === null || parsed === null || !/^postgres(?:ql)?:$/.test(parsed.protocol)) {
    throw new ExportError(
      'config',
      url === null
        ? `${DATABASE_VARIABLE} is not set`
        : `${DATABASE_VARIABLE} is no address of a PostgreSQL database`,
      `variable ${DATABASE_VARIABLE}`,
      'Set it to postgres://user@host:port/database; the password may come from PGPASSWORD or ~/.pgpass.',
    )
  }
  learnSecret(decoded(parsed.password))
  learnSecret(process.env.PGPASSWORD ?? '')
  return {
    label: `${parsed.hostname}${parsed.port === '' ? '' : `:${parsed.port}`}${parsed.pathname}`,
    settings: {
      connectionString: url,
      application_name: 'spillway',
      options: `-c search_path=${SCHEMA}`,
      query_timeout: ANSWER_MS,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      // Idle workers keep a process alive by their own timers.
      allowExitOnIdle: true,
    },
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Makes the tables, or brings them up to date; as often as one likes, and from many places at once.
 * @returns the versions that were there and are there now
 * @throws ExportError `config` when a later spillway made them, or the server is too old
 */
export async function initCluster(
  database: Database,
): Promise<{ readonly before: number; readonly now: number }> {
  const [server] = await database.query(`SELECT current_setting('server_version_num')::integer AS number`)
  if (Number(server?.number) < 140_000) {
    throw new ExportError(
      'config',
      'The PostgreSQL server is older than 14',
      database.label,
      'Use a newer one.',
    )
  }
  return database.transaction(async (client) => {
    await client.query(`SELECT pg_advisory_xact_lock(hashtext('spillway cluster init'))`)
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`)
    await client.query('CREATE TABLE IF NOT EXISTS version (version integer NOT NULL)')
    const { rows } = await client.query('SELECT version FROM version')
    const before = Number((rows[0] as Row | undefined)?.version ?? 0)
    if (before > MIGRATIONS.length) throw madeLater(database.label)
    for (const migration of MIGRATIONS.slice(before)) await client.query(migration)
    await client.query('DELETE FROM version')
    await client.query('INSERT INTO version VALUES ($1)', [MIGRATIONS.length])
    return { before, now: MIGRATIONS.length }
  })
}

/** @throws ExportError `config` unless the tables are those of this version */
export async function requireTables(database: Database): Promise<void> {
  const [found] = await database.query(`SELECT to_regclass('${SCHEMA}.version') IS NOT NULL AS there`)
  const [version] = found?.there === true ? await database.query('SELECT version FROM version') : []
  const there = Number(version?.version ?? 0)
  if (there === MIGRATIONS.length) return
  if (there > MIGRATIONS.length) throw madeLater(database.label)
  throw new ExportError(
    'config',
    there === 0
      ? 'The database has no tables of spillway'
      : 'The tables in the database are those of an earlier spillway',
    database.label,
    'Run `spillway cluster init`.',
  )
}

function madeLater(label: string): ExportError {
  return new ExportError(
    'config',
    'The tables in the database are those of a later spillway',
    label,
    'Use that version, or another database.',
  )
}

/** Whether it is the connection that failed, or a server that is going or coming. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error ? String(error.code) : ''
  return (
    /^(?:E[A-Z]+|08\w{3}|57P0[123]|53300)$/.test(code) ||
    /terminated|timeout|connection error|not queryable/i.test(error.message)
  )
}

/** The server's own words may quote values; its code says enough where it is none of ours. */
function refusal(label: string, error: unknown): unknown {
  if (error instanceof ExportError || !(error instanceof Error)) return error
  const code = 'code' in error ? String(error.code) : error.name
  return new ExportError(
    'target',
    isAway(error)
      ? `The database does not answer (${code})`
      : `The database refuses (${code}: ${error.message})`,
    label,
    `Check ${DATABASE_VARIABLE}, the server and its log, then run again.`,
    { cause: error },
  )
}
