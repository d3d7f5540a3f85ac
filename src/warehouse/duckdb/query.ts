import type { DuckDBConnection, DuckDBInstance, DuckDBResult } from '@duckdb/node-api'
import { ExportError } from '../../core/index.ts'
import { identifier, literal } from '../table/table.ts'
import { loadDuckdb } from './duckdb.ts'
import { duckdbError, ERRORS_WITH_CODES } from './duckdb-error.ts'
import { requireOnlyReads } from './only-reads.ts'

/** What is queried: the files of a data set as one view, or the tables of a DuckDB file. */
export type QuerySource =
  | {
      readonly kind: 'files'
      readonly view: string
      /** SQL of its rows. */
      readonly select: string
      /** Absolute paths of the shards: no other file can be read. */
      readonly files: readonly string[]
      /** Has them there; called once the SQL is known to be one that only reads. */
      bring(): Promise<void>
    }
  | { readonly kind: 'database'; readonly file: string }

/** Values as JSON has them; integers beyond 2^53 and timestamps are strings. */
export type AnswerRow = readonly unknown[]

/** A streamed result: rows come some thousand at a time and are not kept. */
export type AnswerStream = {
  readonly columns: readonly string[]
  readonly batches: AsyncIterable<readonly AnswerRow[]>
}

export type QueryOptions = {
  /** Absolute path of a private folder for what does not fit into memory. */
  readonly temporary: string
  readonly stop: AbortSignal
}

const INTERRUPT_MS = 50

/**
 * Carries out one SELECT in an embedded DuckDB that can't write and reads nothing but its source.
 * @param take gets the result; it can't be read any more once this has resolved
 * @throws ExportError `config` when it is not one statement that only reads, or DuckDB does not understand it;
 *   `damaged` when a shard can't be read
 */
export async function queryDataSet<T>(
  source: QuerySource,
  sql: string,
  { temporary, stop }: QueryOptions,
  take: (answer: AnswerStream) => Promise<T>,
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
    if (source.kind === 'files') await source.bring()
    await shutIn(connection, source, temporary)
    stop.throwIfAborted()
    const result = await (await connection.prepare(sql)).stream()
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
  return DuckDBInstance.create(source.file, { ...ERRORS_WITH_CODES, access_mode: 'READ_ONLY' }).catch(
    (cause: unknown) => {
      throw notReadable(source.file, cause)
    },
  )
}

/** From here on DuckDB opens the shards and its own temporary files, and nothing changes that. */
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

async function batchesOf(result: DuckDBResult): Promise<AsyncIterable<readonly AnswerRow[]>> {
  const { DuckDBTypeId } = await loadDuckdb()
  const integers: readonly number[] = [DuckDBTypeId.BIGINT, DuckDBTypeId.UBIGINT, DuckDBTypeId.HUGEINT]
  const isInteger = result.columnTypes().map(({ typeId }) => integers.includes(typeId))
  return (async function* () {
    for await (const rows of result.yieldRowsJson()) yield rows.map((row) => plainNumbers(row, isInteger))
  })()
}

/** DuckDB's JSON has integers of 64 bits as text, all of them; those that JSON can hold are numbers here. */
function plainNumbers(row: readonly unknown[], isInteger: readonly boolean[]): AnswerRow {
  return row.map((value, i) => {
    const number = isInteger[i] && value !== null ? Number(value) : Number.NaN
    return Number.isSafeInteger(number) ? number : value
  })
}

/** Without a cause: DuckDB's own message may quote a value of a row, or of the statement. */
function notCarriedOut(error: unknown, source: QuerySource): ExportError {
  const message = error instanceof Error ? error.message : ''
  // No code says that it is a shard that can't be read; its path, which only spillway and DuckDB know, does.
  const shard = source.kind === 'files' ? source.files.find((file) => message.includes(file)) : undefined
  if (shard !== undefined) return notAShard(shard)
  const { kind, position, similar } = duckdbError(error)
  const at = position === null ? '' : ` at character ${position + 1} of the SQL`
  const meant = similar.length === 0 ? '' : `; similar names: ${similar.join(', ')}`
  return new ExportError(
    'config',
    `DuckDB does not carry out the SQL: ${kind === null ? 'an error' : `${kind} Error`}${at}${meant}`,
    '',
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

function notAShard(file: string): ExportError {
  return new ExportError(
    'damaged',
    'DuckDB can not read the shard',
    file,
    'Run `verify` to see which shards are damaged, and `verify --fix` to export them anew.',
  )
}

function notReadable(file: string, cause: unknown): ExportError {
  return new ExportError(
    'config',
    'DuckDB can not open the file for reading',
    file,
    'See that it is there and that no other process is writing to it.',
    { cause },
  )
}
