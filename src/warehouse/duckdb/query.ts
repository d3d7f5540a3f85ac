import type { DuckDBConnection, DuckDBInstance, DuckDBResult } from '@duckdb/node-api'
import { ExportError } from '../../core/index.ts'
import { identifier, literal } from '../table/table.ts'
import { loadDuckdb } from './duckdb.ts'
import { duckdbError, ERRORS_WITH_CODES, requireDuckdbFile } from './duckdb-file.ts'
import { messageOf } from './message-about-sql.ts'

/** What is queried: the files of a data set as one view, or the tables of a DuckDB file. */
export type QuerySource =
  | {
      readonly kind: 'files'
      readonly view: string
      /** SQL of its rows. */
      readonly select: string
      /** Absolute paths of the shards: no other file can be read. */
      readonly files: readonly string[]
      /** Makes them available. Called once the SQL is known to only read. */
      download(): Promise<void>
    }
  | { readonly kind: 'database'; readonly file: string }

/** Values as JSON has them; integers beyond 2^53 and timestamps are strings. */
export type QueryRow = readonly unknown[]

/** A streamed result: rows come some thousand at a time and are not kept. */
export type QueryStream = {
  readonly columns: readonly string[]
  readonly batches: AsyncIterable<readonly QueryRow[]>
}

export type QueryOptions = {
  /** Absolute path of a private folder for what does not fit into memory. */
  readonly temporary: string
  readonly stop: AbortSignal
}

const INTERRUPT_MS = 50

/**
 * Carries out one SELECT in an embedded DuckDB that cannot write and reads nothing but its source.
 * @param take gets the result; it cannot be read any more once this has resolved
 * @throws ExportError `config` when it is not one statement that only reads, or DuckDB does not understand it;
 *   `damaged` when a shard cannot be read
 */
export async function queryDataSet<T>(
  source: QuerySource,
  sql: string,
  { temporary, stop }: QueryOptions,
  take: (result: QueryStream) => Promise<T>,
): Promise<T> {
  const instance = await openInstance(source)
  const connection = await instance.connect()
  let interrupting: NodeJS.Timeout | undefined
  const interrupt = (): void => {
    // A statement that has not started misses the interrupt, so it is repeated.
    interrupting ??= setInterval(() => connection.interrupt(), INTERRUPT_MS)
    connection.interrupt()
  }
  stop.addEventListener('abort', interrupt)
  try {
    stop.throwIfAborted()
    await requireOnlyReads(connection, sql)
    if (source.kind === 'files') await source.download()
    await shutIn(connection, source, temporary)
    stop.throwIfAborted()
    // Until here no row was read, so that the message is about the SQL alone.
    const statement = await connection.prepare(sql).catch((error: unknown) => {
      throw notCarriedOut(error, source, sql)
    })
    const result = await statement.stream()
    return await take({ columns: result.columnNames(), batches: await batchesOf(result) })
  } catch (error) {
    if (stop.aborted) throw stop.reason
    throw error instanceof ExportError ? error : notCarriedOut(error, source)
  } finally {
    stop.removeEventListener('abort', interrupt)
    clearInterval(interrupting)
    connection.closeSync()
    instance.closeSync()
  }
}

async function openInstance(source: QuerySource): Promise<DuckDBInstance> {
  const { DuckDBInstance } = await loadDuckdb()
  if (source.kind === 'files') return DuckDBInstance.create(':memory:', ERRORS_WITH_CODES)
  await requireDuckdbFile(source.file).catch((cause: unknown) => {
    throw cause instanceof ExportError ? cause : notReadable(source.file, cause)
  })
  return DuckDBInstance.create(source.file, { ...ERRORS_WITH_CODES, access_mode: 'READ_ONLY' }).catch(
    (cause: unknown) => {
      throw notReadable(source.file, cause)
    },
  )
}

/** Locks DuckDB's settings: it can only open the shards and its own temporary files. */
async function shutIn(connection: DuckDBConnection, source: QuerySource, temporary: string): Promise<void> {
  await connection.run("SET TimeZone = 'UTC'")
  await connection.run(`SET temp_directory = ${literal(temporary)}`)
  await connection.run('SET allow_persistent_secrets = false')
  await connection.run('SET autoinstall_known_extensions = false')
  await connection.run('SET autoload_known_extensions = false')
  if (source.kind === 'files') {
    await connection.run(`SET allowed_paths = [${source.files.map(literal).join(', ')}]`)
    await connection.run(`CREATE VIEW ${identifier(source.view)} AS ${source.select}`)
  }
  await connection.run('SET enable_external_access = false')
  await connection.run('SET lock_configuration = true')
}

async function batchesOf(result: DuckDBResult): Promise<AsyncIterable<readonly QueryRow[]>> {
  const { DuckDBTypeId } = await loadDuckdb()
  const integers: readonly number[] = [DuckDBTypeId.BIGINT, DuckDBTypeId.UBIGINT, DuckDBTypeId.HUGEINT]
  const isInteger = result.columnTypes().map(({ typeId }) => integers.includes(typeId))
  return (async function* () {
    for await (const rows of result.yieldRowsJson()) yield rows.map((row) => plainNumbers(row, isInteger))
  })()
}

/** DuckDB's JSON has all 64-bit integers as strings. Those that are safe integers become numbers. */
function plainNumbers(row: readonly unknown[], isInteger: readonly boolean[]): QueryRow {
  return row.map((value, i) => {
    const number = isInteger[i] && value !== null ? Number(value) : Number.NaN
    return Number.isSafeInteger(number) ? number : value
  })
}

/**
 * Without a cause: DuckDB's own message may quote a value of a row, or of the statement.
 * @param sql which DuckDB did not even prepare; absent: rows may have been read
 */
function notCarriedOut(error: unknown, source: QuerySource, sql?: string): ExportError {
  const message = error instanceof Error ? error.message : ''
  // No code says that it is a shard that cannot be read; its path, which only spillway and DuckDB know, does.
  const shard = source.kind === 'files' ? source.files.find((file) => message.includes(file)) : undefined
  if (shard !== undefined) return notAShard(shard)
  const { kind, position, similar, text } = duckdbError(error)
  const says = sql !== undefined && kind !== null && IS_ABOUT_SQL.has(kind) ? messageOf(text, sql) : ''
  const at = position === null ? '' : ` at character ${position + 1} of the SQL`
  const meant = similar.length === 0 ? '' : `; similar names: ${similar.join(', ')}`
  return refusal(
    `DuckDB does not carry out the SQL: ${kind === null ? 'an error' : `${kind} Error`}${at}${says}${meant}`,
    kind !== null && IS_ABOUT_VALUES.has(kind)
      ? 'A value does not fit (which one is not shown, since it may be secret): try_cast() gives null for it.'
      : 'Correct the SQL; without any, `query` shows the columns.',
  )
}

const IS_ABOUT_VALUES: ReadonlySet<string> = new Set([
  'Conversion',
  'Invalid Input',
  'Invalid Type',
  'Mismatch Type',
  'Out of Range',
])

const IS_ABOUT_SQL: ReadonlySet<string> = new Set(['Parser', 'Binder', 'Catalog'])

function notAShard(file: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'DuckDB cannot read the shard',
    where: file,
    next: 'Run `verify` to see which shards are damaged, and `verify --fix` to export them anew.',
  })
}

function notReadable(file: string, cause: unknown): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'DuckDB cannot open the file for reading',
    where: file,
    next: 'See that it is there and that no other process is writing to it.',
    cause,
  })
}

/**
 * Table functions that only read. The others that DuckDB 1.5 has change its settings, write logs and profiles, or carry
 * out SQL that is made at run time. Files are out of reach of these too, but for the shards (`allowed_paths`).
 */
const TABLE_FUNCTIONS: ReadonlySet<string> = new Set(
  `range generate_series unnest repeat repeat_row summary histogram histogram_values json_each json_tree
   read_parquet parquet_scan parquet_schema parquet_metadata parquet_file_metadata parquet_kv_metadata
   parquet_full_metadata parquet_bloom_probe read_csv read_csv_auto
   duckdb_columns duckdb_constraints duckdb_databases duckdb_functions duckdb_indexes duckdb_keywords
   duckdb_memory duckdb_schemas duckdb_settings duckdb_tables duckdb_temporary_files duckdb_types duckdb_views
   pragma_table_info pragma_storage_info pragma_version pg_timezone_names icu_calendar_names`.split(/\s+/),
)

/** `EXPLAIN`, and `ANALYZE` and the options that it may have; nothing that could hold another statement. */
const EXPLAIN = /^\s*EXPLAIN(?:\s+ANALYZE)?(?:\s*\((?=\s*(?:FORMAT|ANALYZE)\b)[\w\s,]*\))?(?=[\s(])/i

/**
 * Checks that SQL is one SELECT, or EXPLAIN of one, and uses nothing that writes. DuckDB's own parser decides: it turns
 * a SELECT into JSON, and fails for everything else. EXPLAIN is cut off before.
 * @throws ExportError `config`
 */
async function requireOnlyReads(connection: DuckDBConnection, sql: string): Promise<void> {
  const explained = sql.replace(EXPLAIN, '')
  const reader = await connection.runAndReadAll('SELECT json_serialize_sql($1::VARCHAR)', [explained])
  const parsed = JSON.parse(String(reader.getRowsJson()[0]?.[0])) as Parsed
  if (parsed.error) {
    if (parsed.error_type !== 'not implemented') throw notParsed(parsed, sql)
    throw refusal(
      'Only SELECT, and EXPLAIN of a SELECT, is carried out here: nothing may be changed',
      'Load the data set into a database of your own to change it: `spillway load --to duckdb:<file>`.',
    )
  }
  const { statements } = parsed
  if (statements.length === 0)
    throw refusal('The SQL is empty', 'Give one SELECT, or leave it out: `query` then shows the columns.')
  if (statements.length !== 1)
    throw refusal(`Expected one statement, found ${statements.length}`, 'Ask one question at a time.')
  const unsupported = tableFunctions(statements).find((name) => !TABLE_FUNCTIONS.has(name))
  if (unsupported === undefined) return
  throw refusal(
    `The table function ${unsupported} is not available here: it does not only read rows`,
    'Ask the view, or load the data set into a database of your own: `spillway load --to duckdb:<file>`.',
  )
}

/** @param what holds no value of a row */
function refusal(what: string, next: string): ExportError {
  return new ExportError({ kind: 'config', what, where: '', next })
}

type Parsed =
  | {
      readonly error: true
      readonly error_type: string
      readonly error_message?: string
      readonly position?: string
    }
  | { readonly error: false; readonly statements: readonly unknown[] }

/** The names of all table functions in a tree of DuckDB's parser. */
function tableFunctions(tree: unknown): readonly string[] {
  const names: string[] = []
  // A list of what is left, as SQL may be nested deeper than the stack.
  const left: unknown[] = [tree]
  while (left.length > 0) {
    const node = left.pop()
    if (typeof node !== 'object' || node === null) continue
    if ('type' in node && node.type === 'TABLE_FUNCTION' && 'function' in node)
      names.push(nameOf(node.function))
    for (const child of Object.values(node)) left.push(child)
  }
  return names
}

function nameOf(call: unknown): string {
  const name = typeof call === 'object' && call !== null && 'function_name' in call ? call.function_name : ''
  return String(name).toLowerCase()
}

function notParsed(
  { position, error_message = '' }: Extract<Parsed, { error: true }>,
  sql: string,
): ExportError {
  const at = position === undefined ? '' : ` at character ${Number(position) + 1} of the SQL`
  const says = messageOf(error_message, sql)
  return refusal(`DuckDB does not understand the SQL: Parser Error${at}${says}`, 'Correct the SQL.')
}
