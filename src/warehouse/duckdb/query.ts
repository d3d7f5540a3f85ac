import type {
  DuckDBConnection,
  DuckDBInstance,
  DuckDBPreparedStatement,
  DuckDBResult,
  DuckDBType,
  DuckDBValueConverter,
  Json,
} from '@duckdb/node-api'
import { ExportError } from '../../core/index.ts'
import { duckdbPath, identifier, literal } from '../table/table.ts'
import { duckdbError, loadDuckdb, openInstance, requireDuckdbFile } from './instance.ts'

/** What is queried: the files of a data set as one view, or the tables of a DuckDB file. */
export type QuerySource =
  | {
      readonly kind: 'files'
      readonly view: string
      /** SQL of its rows. */
      readonly select: string
      /** Absolute paths of the shards: no other file can be read. */
      readonly files: readonly string[]
      /** Makes them available. Called once the SQL is known to be one statement. */
      download(): Promise<void>
    }
  | { readonly kind: 'database'; readonly file: string }

/** Values as JSON has them; integers beyond 2^53 and timestamps, in UTC, are strings. */
export type QueryRow = readonly unknown[]

/** A streamed result: rows come some thousand at a time and are not kept. */
export type QueryStream = {
  /** Each name once. */
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
 * Carries out one SELECT in a DuckDB that cannot write and reads nothing but its source.
 * @param take gets the result; it cannot be read any more once this has resolved
 * @throws ExportError `config`: it is not one statement that reads, or not understood; `damaged`: a shard is unreadable
 */
export async function queryDataSet<T>(
  source: QuerySource,
  sql: string,
  { temporary, stop }: QueryOptions,
  take: (result: QueryStream) => Promise<T>,
): Promise<T> {
  const instance = await openSource(source)
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
    const statements = await extract(connection, sql)
    if (source.kind === 'files') await source.download()
    await shutIn(connection, source, temporary)
    stop.throwIfAborted()
    const statement = await prepareQuestion(statements)
    const { result, texts } = await runQuestion(connection, statement, sql)
    return await take({ columns: result.deduplicatedColumnNames(), batches: batchesOf(result, texts) })
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

async function openSource(source: QuerySource): Promise<DuckDBInstance> {
  if (source.kind === 'files') return openInstance(':memory:')
  const { file } = source
  try {
    await requireDuckdbFile(file)
    return await openInstance(file, { access_mode: 'READ_ONLY' })
  } catch (cause) {
    if (cause instanceof ExportError) throw cause
    throw new ExportError({
      kind: 'config',
      what: 'DuckDB cannot open the file for reading',
      where: file,
      next: 'See that it is there and that no other process is writing to it.',
      cause,
    })
  }
}

/** Locks DuckDB's settings: it can only open the shards and its own temporary files. */
async function shutIn(connection: DuckDBConnection, source: QuerySource, temporary: string): Promise<void> {
  await connection.run("SET TimeZone = 'UTC'")
  await connection.run(`SET temp_directory = ${literal(temporary)}`)
  await connection.run('SET allow_persistent_secrets = false')
  await connection.run('SET autoinstall_known_extensions = false')
  await connection.run('SET autoload_known_extensions = false')
  if (source.kind === 'files') {
    const paths = new Set(source.files.flatMap((file) => [file, duckdbPath(file)]))
    await connection.run(`SET allowed_paths = [${[...paths].map(literal).join(', ')}]`)
    await connection.run(`CREATE VIEW ${identifier(source.view)} AS ${source.select}`)
  }
  await connection.run('SET enable_external_access = false')
  await connection.run('SET lock_configuration = true')
}

/**
 * DuckDB itself writes strings and times as text, which is read as bytes: the package drops a U+FEFF at the beginning,
 * and words times without end otherwise. What cannot be written in front of a SELECT, such as EXPLAIN, runs as it is.
 */
async function runQuestion(
  connection: DuckDBConnection,
  statement: DuckDBPreparedStatement,
  sql: string,
): Promise<{ readonly result: DuckDBResult; readonly texts: ReadonlySet<number> }> {
  const { DuckDBListType, DuckDBTypeId: Id } = await loadDuckdb()
  const written: ReadonlySet<number> = new Set([
    ...[Id.VARCHAR, Id.DATE, Id.TIMESTAMP, Id.TIMESTAMP_TZ],
    ...[Id.TIMESTAMP_S, Id.TIMESTAMP_MS, Id.TIMESTAMP_NS],
  ])
  const asText = (type: DuckDBType, value: string, depth = 0): string | null => {
    if (written.has(type.typeId)) return `encode(${value}::VARCHAR)`
    const item = `item_${depth}`
    const inner = type instanceof DuckDBListType ? asText(type.valueType, item, depth + 1) : null
    return inner === null ? null : `list_transform(${value}, lambda ${item}: ${inner})`
  }
  const terms = Array.from({ length: statement.columnCount }, (_, i) =>
    asText(statement.columnType(i), `#${i + 1}`),
  )
  const texts = new Set(terms.flatMap((term, i) => (term === null ? [] : i)))
  const isWritten =
    texts.size > 0 &&
    (await connection.run(`CREATE TEMP MACRO ${RESULT}() AS TABLE ${sql}`).then(
      () => true,
      () => false,
    ))
  if (!isWritten) return { result: await statement.stream(), texts: new Set() }
  const select = terms.map((term, i) => `${term ?? `#${i + 1}`} AS ${identifier(statement.columnName(i))}`)
  return { result: await connection.stream(`SELECT ${select.join(', ')} FROM ${RESULT}()`), texts }
}

const RESULT = 'spillway_result'

/** Values as of {@link QueryRow}. @param texts columns with strings as bytes */
async function* batchesOf(
  result: DuckDBResult,
  texts: ReadonlySet<number>,
): AsyncGenerator<readonly QueryRow[]> {
  const { DuckDBBlobValue, DuckDBTypeId, JsonDuckDBValueConverter } = await loadDuckdb()
  const integers: ReadonlySet<number> = new Set([
    DuckDBTypeId.BIGINT,
    DuckDBTypeId.UBIGINT,
    DuckDBTypeId.HUGEINT,
  ])
  const convert: DuckDBValueConverter<Json> = (value, type, converter) => {
    // The package would have all 64-bit integers as strings.
    const number = integers.has(type.typeId) && value !== null ? Number(value) : Number.NaN
    return Number.isSafeInteger(number) ? number : JsonDuckDBValueConverter(value, type, converter)
  }
  const convertText: DuckDBValueConverter<Json> = (value, type, converter) =>
    value instanceof DuckDBBlobValue
      ? Buffer.from(value.bytes).toString()
      : JsonDuckDBValueConverter(value, type, converter)
  for (;;) {
    const chunk = await result.fetchChunk()
    if (chunk === null || chunk.rowCount === 0) return
    const columns = Array.from({ length: chunk.columnCount }, (_, i) =>
      chunk.convertColumnValues(i, texts.has(i) ? convertText : convert),
    )
    yield Array.from({ length: chunk.rowCount }, (_, row) => columns.map((column) => column[row] ?? null))
  }
}

/** Without a cause: DuckDB's own message may quote a value of a row, or of the statement. */
function notCarriedOut(error: unknown, source: QuerySource): ExportError {
  const message = error instanceof Error ? error.message : ''
  // No code says that it is a shard that cannot be read; its path, which only spillway and DuckDB know, does.
  const shard = source.kind === 'files' ? source.files.find((file) => message.includes(file)) : undefined
  if (shard !== undefined) return notAShard(shard)
  const { kind, position, similar } = duckdbError(error)
  if (kind === 'Permission') return onlyReads()
  const at = position === null ? '' : ` at character ${position + 1} of the SQL`
  const meant = similar.length === 0 ? '' : `; similar names: ${similar.join(', ')}`
  return refusal(
    `DuckDB does not carry out the SQL: ${kind === null ? 'an error' : `${kind} Error`}${at}${meant}`,
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

export function notAShard(file: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'DuckDB cannot read the shard',
    where: file,
    next: 'Run `verify`, which names the damaged shards and prints the command that exports them again.',
  })
}

/** @throws ExportError `config` when it is not one statement */
async function extract(connection: DuckDBConnection, sql: string): Promise<Statements> {
  try {
    return await connection.extractStatements(sql)
  } catch (error) {
    // Of SQL without a statement DuckDB says no more than that.
    if (duckdbError(error).kind !== null) throw error
    throw refusal('The SQL is empty', 'Give one SELECT, or leave it out: `query` then shows the columns.')
  }
}

type Statements = Awaited<ReturnType<DuckDBConnection['extractStatements']>>

/** DuckDB makes several statements of a PIVOT: the first creates a type. @throws ExportError `config` for any other */
async function prepareQuestion(statements: Statements): Promise<DuckDBPreparedStatement> {
  const { StatementType } = await loadDuckdb()
  const last = statements.count - 1
  for (let at = 0; ; at++) {
    const statement = await statements.prepare(at)
    const { statementType } = statement
    if (at < last && statementType === StatementType.CREATE) await statement.run()
    else if (at < last)
      throw refusal(`Expected one statement, found ${statements.count}`, 'Ask one question at a time.')
    else if (statementType === StatementType.SELECT || statementType === StatementType.EXPLAIN)
      return statement
    else throw onlyReads()
  }
}

function onlyReads(): ExportError {
  return refusal(
    'Only SELECT, and EXPLAIN of a SELECT, is carried out here: nothing may be changed, and no other file is read',
    'Load the data set into a database of your own to change it: `spillway load --to duckdb:<file>`.',
  )
}

/** @param what holds no value of a row */
function refusal(what: string, next: string): ExportError {
  return new ExportError({ kind: 'config', what, where: '', next })
}
