import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { DuckDBBlobValue, DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import type { Client as PgClient } from 'pg'
import { codeOf, ExportError } from '../../core/index.ts'
import type { ColumnSpec } from '../../rows/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import { loadDuckdb, openInstance, type TargetWait } from '../duckdb/instance.ts'
import { notAShard } from '../duckdb/query.ts'
import { columnList } from '../table/shard-rows.ts'
import {
  identifier,
  LEDGER,
  literal,
  OWN_COLUMNS,
  POSTGRES_TYPES,
  postgresIndexes,
  qualified,
  replicaIdentity,
  shownName,
  type TableSpec,
} from '../table/table.ts'
import {
  type Database,
  type FoundColumn,
  type RelationKind,
  requireAcknowledged,
  requireWhole,
  shownShards,
  transaction,
  type Warehouse,
} from '../table/warehouse.ts'
import { connectPostgres, type PostgresConnection } from './postgres-connection.ts'

type PostgresOptions = {
  readonly stop: AbortSignal
  /** Called once when another load holds the tables. */
  readonly onWait: (wait: TargetWait) => void
}

/** DuckDB reads the shards, and writes a line of CSV for each row, which goes in by COPY. */
export class PostgresWarehouse implements Warehouse {
  readonly #postgres: PostgresConnection
  readonly #duckdb: DuckDBInstance
  readonly #reader: DuckDBConnection
  readonly #onWait: PostgresOptions['onWait']
  #hasWaited = false

  private constructor(
    postgres: PostgresConnection,
    duckdb: DuckDBInstance,
    reader: DuckDBConnection,
    onWait: PostgresOptions['onWait'],
  ) {
    this.#postgres = postgres
    this.#duckdb = duckdb
    this.#reader = reader
    this.#onWait = onWait
  }

  /** @param label the address as it may be shown @throws ExportError as {@link connectPostgres} does */
  static async connect(
    url: string,
    label: string,
    { stop, onWait }: PostgresOptions,
  ): Promise<PostgresWarehouse> {
    await loadDuckdb()
    const postgres = await connectPostgres(url, label, stop)
    const duckdb = await openInstance(':memory:')
    return new PostgresWarehouse(postgres, duckdb, await duckdb.connect(), onWait)
  }

  async find(table: TableSpec): Promise<TableSpec> {
    if (table.schema !== null) return table
    // Where a table lies, or would be made, that is named without a schema.
    const [found] = await this.query(
      `SELECT coalesce((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)), current_schema()) AS name`,
      [identifier(table.name)],
    )
    return { ...table, schema: typeof found?.name === 'string' ? found.name : null }
  }

  readonly query: Run = (sql, values) => this.#postgres.guarded(() => this.#run(sql, values))

  async hasSchema(name: string): Promise<boolean> {
    return (await this.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [name])).length > 0
  }

  async findColumns(table: TableSpec): Promise<readonly FoundColumn[]> {
    const rows = await this.query(
      `SELECT a.attname AS name, CASE a.atttypid ${KNOWN_TYPES} ELSE format_type(a.atttypid, NULL) END AS type,
         NOT a.attnotnull OR a.atthasdef OR a.attidentity <> '' AS optional
       FROM pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`,
      [qualified(table, table.name)],
    )
    return rows as unknown as readonly FoundColumn[]
  }

  async kindOf(table: TableSpec, name: string): Promise<RelationKind> {
    const [found] = await this.query(
      `SELECT CASE WHEN relkind IN ('r', 'p', 'f') THEN 'table' WHEN relkind = 'v' THEN 'view' ELSE 'object of another kind' END AS kind FROM pg_class WHERE oid = to_regclass($1)`,
      [qualified(table, name)],
    )
    return (found?.kind ?? null) as RelationKind
  }

  /** Options and comment stay. A view with other columns is dropped, with its rights. @throws ExportError `config` */
  async makeView(name: string, select: string, meaning: string): Promise<void> {
    const [found] = await this.#run(
      `SELECT reloptions AS options, obj_description(oid, 'pg_class') AS remark FROM pg_class WHERE oid = to_regclass($1)`,
      [name],
    )
    const options = ((found?.options ?? []) as readonly string[]).map((option) => {
      const at = option.indexOf('=')
      return `${identifier(option.slice(0, at))} = ${literal(option.slice(at + 1))}`
    })
    const create = `CREATE OR REPLACE VIEW ${name}${options.length === 0 ? '' : ` WITH (${options.join(', ')})`} AS ${select}`
    if (!(await this.#orBack(create, '42P16'))) {
      await this.#run(`DROP VIEW ${name}`).catch((cause: unknown) => {
        throw codeOf(cause) === '2BP01' ? hasDependents(name) : cause
      })
      await this.#run(create)
    }
    const remark = found === undefined ? meaning : found.remark
    if (typeof remark === 'string') await this.#run(`COMMENT ON VIEW ${name} IS ${literal(remark)}`)
  }

  readonly types = POSTGRES_TYPES
  readonly ledgerKey = ', PRIMARY KEY (data_set, table_name, shard)'

  afterCreation(name: string): readonly string[] {
    return [replicaIdentity(name), `COMMENT ON TABLE ${name} IS ${literal(WITHOUT_INDEXES)}`]
  }

  define(table: TableSpec, work: (run: Database['run']) => Promise<void>): Promise<void> {
    // Loads into other tables make the same ledger, and the same schema.
    return this.#define('spillway tables', table, () => work(this.#database.run))
  }

  transaction<T>(table: TableSpec, work: (database: Database) => Promise<T>): Promise<T> {
    return this.#postgres.guarded(() => this.#inTransaction(lockOf(table), () => work(this.#database)))
  }

  async finish(table: TableSpec): Promise<void> {
    const name = qualified(table, table.name)
    await this.#define(lockOf(table), table, async () => {
      const [found] = await this.#run(`SELECT obj_description(to_regclass($1), 'pg_class') AS remark`, [name])
      if (found?.remark !== WITHOUT_INDEXES) return
      const own = OWN_COLUMNS.map((column) => identifier(column.name)).join(', ')
      for (const sql of [...postgresIndexes(name, table.columns), `CREATE INDEX ON ${name} (${own})`]) {
        // A value may be too long for an index (54000).
        await this.#orBack(sql, '54000')
      }
      await this.#run(`COMMENT ON TABLE ${name} IS NULL`)
    })
  }

  async close(): Promise<void> {
    this.#reader.closeSync()
    this.#duckdb.closeSync()
    await this.#postgres.close()
  }

  readonly #run: Run = async (sql, values = []) => (await this.#postgres.client.query(sql, values)).rows

  readonly #database: Database = {
    query: this.#run,
    run: async (sql) => (await this.#postgres.client.query(sql)).rowCount ?? 0,
    insert: (shards, select, table, into) =>
      copyInto(this.#postgres.client, this.#reader, shards, select, table, into),
  }

  /** Settings and locks end with it, for poolers. READ COMMITTED sees what the load before has committed. */
  #inTransaction<T>(lock: string, work: () => Promise<T>): Promise<T> {
    const locked = async (): Promise<T> => {
      await this.#run(SETTINGS)
      await this.#lock(lock)
      return work()
    }
    return transaction(this.#run, locked, 'BEGIN ISOLATION LEVEL READ COMMITTED')
  }

  /** Changes definitions. It waits for their locks for some seconds only: others queue behind such a wait. */
  #define(lock: string, table: TableSpec, work: () => Promise<void>): Promise<void> {
    return this.#postgres.guarded(async () => {
      try {
        await this.#inTransaction(lock, async () => {
          await this.#run(LOCK_TIMEOUT)
          await work()
        })
      } catch (error) {
        throw codeOf(error) === '55P03' ? await inUse(this.#run, table) : error
      }
    })
  }

  async #lock(name: string): Promise<void> {
    const [got] = await this.#run('SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS held', [name])
    if (got?.held === true) return
    if (!this.#hasWaited) this.#onWait({ holder: null, limitMs: null })
    this.#hasWaited = true
    // It is another load's turn, however long that takes.
    await this.#run('SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0')
    await this.#run('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [name])
    await this.#run('SET LOCAL lock_timeout = DEFAULT; SET LOCAL statement_timeout = DEFAULT')
  }

  /** Runs a statement of a transaction; one that fails with this code is as if it had not been run. @returns whether it was */
  async #orBack(sql: string, code: string): Promise<boolean> {
    await this.#run('SAVEPOINT spillway_statement')
    try {
      await this.#run(sql)
      await this.#run('RELEASE SAVEPOINT spillway_statement')
      return true
    } catch (error) {
      if (codeOf(error) !== code) throw error
      await this.#run('ROLLBACK TO SAVEPOINT spillway_statement')
      return false
    }
  }
}

function lockOf(table: TableSpec): string {
  return `spillway ${qualified(table, table.name)}`
}

// A shorter one that role or database have stays.
const LOCK_TIMEOUT =
  "SELECT set_config('lock_timeout', '5s', true) WHERE current_setting('lock_timeout') = '0'"

/** Names a session that has the table, its views or the ledger. */
async function inUse(run: Run, { schema, name }: TableSpec): Promise<ExportError> {
  const holders = await run(
    `SELECT DISTINCT 'process ' || a.pid || ' of ' || a.usename || coalesce(' (' || nullif(a.application_name, '') || ', ' || a.state || ')', '') AS holder
     FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.granted AND l.pid <> pg_backend_pid() AND n.nspname = $1 AND (c.relname = $3 OR starts_with(c.relname, $2)) ORDER BY 1`,
    [schema, name, LEDGER],
  )
  const [first = { holder: 'another session' }, ...others] = holders
  return new ExportError({
    kind: 'locked',
    what: `The load has to change a definition, and ${first.holder}${others.length === 0 ? '' : ` and ${others.length} more`} has the table or a view in use`,
    where: shownName({ schema }, name),
    next: 'Load again when that transaction has ended; what is loaded stays.',
  })
}

// Where a role or a database has standard_conforming_strings off, a backslash of a name would escape what follows it.
// Rows that a policy hides would be loaded twice: with row_security off PostgreSQL fails instead.
const SETTINGS =
  "SET LOCAL TimeZone = 'UTC'; SET LOCAL standard_conforming_strings = on; SET LOCAL row_security = off"

/** Marks a table whose indexes are missing, also after a failed load: made after its first rows, they cost half. */
const WITHOUT_INDEXES = 'spillway makes the indexes when the first load is complete'

type Run = (sql: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

/** By their numbers: a setting of the server may quote their names. */
const KNOWN_TYPES = Object.values(POSTGRES_TYPES)
  .map((type) => `WHEN ${literal(type)}::regtype THEN ${literal(type)}`)
  .join(' ')

function hasDependents(name: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The view has other columns than the load gives it, and it cannot be replaced, since other objects depend on it',
    where: name,
    next: `Drop these, or all of them with DROP VIEW ${name} CASCADE, and load again; nothing was changed.`,
  })
}

async function copyInto(
  client: PgClient,
  reader: DuckDBConnection,
  shards: readonly ManifestShard[],
  select: string,
  table: TableSpec,
  into: string,
): Promise<number> {
  const { from } = await import('pg-copy-streams')
  const names = columnList(table)
  // As bytes, so that no strings of this process are made of them.
  const line = `encode(concat(${table.columns.map(csvField).join(", ',', ")}, chr(10)))`
  const paths = shards.map(({ path }) => path)
  // Without a cause: DuckDB's messages may quote a row.
  const reading = <T>(work: Promise<T>): Promise<T> =>
    work.catch(() => {
      throw notAShard(shownShards(paths))
    })
  const result = await reading(reader.stream(`SELECT ${line} FROM (${select}) AS shard(${names})`))
  let [rows, changed] = [0, 0]
  async function* lines(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = await reading(result.fetchChunk())
      if (chunk === null || chunk.rowCount === 0) break
      rows += chunk.rowCount
      const given = (chunk.getColumnValues(0) as DuckDBBlobValue[]).map(({ bytes }) => bytes)
      const block = Buffer.concat(given)
      if (!block.includes(0)) yield block
      else {
        changed += given.filter((bytes) => bytes.includes(0)).length
        yield Buffer.from(block.toString().replaceAll('\0', '\uFFFD'))
      }
    }
    requireWhole(shards, rows)
  }
  const copy = client.query(from(`COPY ${into} (${names}) FROM STDIN WITH (FORMAT csv)`))
  await pipeline(Readable.from(lines(), { objectMode: true, highWaterMark: 8 }), copy)
  requireAcknowledged(shownName(table, table.name), paths, rows, copy.rowCount)
  return changed
}

/** A field of CSV as COPY reads it; null where it is to be empty. */
function csvField({ name, type }: ColumnSpec): string {
  const column = identifier(name)
  switch (type) {
    case 'text':
      return quoted(column)
    case 'int64':
    case 'boolean':
      return `${column}::VARCHAR`
    case 'timestamp':
      return `make_timestamp(epoch_us(${column}))::VARCHAR || '+00'`
    case 'list': {
      const item = `replace(replace(x, '\\', '\\\\'), '"', '\\"')`
      const items = `list_transform(${column}, x -> CASE WHEN x IS NULL THEN 'NULL' ELSE '"' || ${item} || '"' END)`
      return quoted(`('{' || array_to_string(${items}, ',') || '}')`)
    }
  }
}

/** Looked at before it is copied: few texts hold a quote. */
function quoted(text: string): string {
  return `'"' || if(contains(${text}, '"'), replace(${text}, '"', '""'), ${text}) || '"'`
}
