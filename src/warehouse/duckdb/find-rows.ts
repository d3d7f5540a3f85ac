import { ExportError } from '../../core/index.ts'
import { literal } from '../table/table.ts'
import { loadDuckdb } from './duckdb.ts'
import { duckdbError, INSTANCE_OPTIONS } from './duckdb-file.ts'
import { batchesOf, connected, notAShard, type QueryRow } from './query.ts'

export type ShardGroup = {
  /** SQL that reads their rows, strings as bytes. */
  readonly sql: string
  /** What DuckDB opens, and the shard that it is. */
  readonly files: ReadonlyMap<string, string>
}

/** The table of texts that SQL may look up: its only column is `form`. */
export const LOOKUP = 'lookup'

/** What DuckDB may take for the texts and the rows at work. */
const MEMORY = '300MB'

/**
 * Reads rows of shards, in order, by SQL that looks texts up. DuckDB writes nothing to a disk.
 * @param onRows gets some thousand rows at a time
 * @throws ExportError `damaged`: a shard cannot be read; `config`: texts need too much memory, DuckDB is not installed
 */
export async function findRows(
  texts: Iterable<string>,
  groups: AsyncIterable<ShardGroup>,
  stop: AbortSignal,
  onRows: (rows: readonly QueryRow[]) => void,
): Promise<void> {
  const { DuckDBInstance, DuckDBTypeId } = await loadDuckdb()
  const instance = await DuckDBInstance.create(':memory:', { ...INSTANCE_OPTIONS, temp_directory: '' })
  let files: ShardGroup['files'] = new Map()
  const explain = (error: unknown): ExportError => notRead(error, files)
  return connected(instance, stop, explain, async (connection) => {
    await connection.run(`SET memory_limit = ${literal(MEMORY)}`)
    // Several threads would give the rows in another order each time.
    await connection.run('SET threads = 1')
    await connection.run('SET autoinstall_known_extensions = false')
    await connection.run(`CREATE TABLE ${LOOKUP} (form VARCHAR)`)
    const appender = await connection.createAppender(LOOKUP)
    for (const text of texts) {
      appender.appendVarchar(text)
      appender.endRow()
    }
    appender.closeSync()
    for await (const group of groups) {
      stop.throwIfAborted()
      files = group.files
      const result = await connection.stream(group.sql)
      const bytes = result.columnTypes().flatMap(({ typeId }, i) => (typeId === DuckDBTypeId.BLOB ? i : []))
      for await (const rows of batchesOf(result, new Set(bytes))) onRows(rows)
    }
  })
}

/** Without a cause: messages of DuckDB may quote values. */
function notRead(error: unknown, files: ShardGroup['files']): ExportError {
  const message = error instanceof Error ? error.message : ''
  for (const [opened, shard] of files) if (message.includes(opened)) return notAShard(shard)
  const { kind } = duckdbError(error)
  return new ExportError({
    kind: kind === 'Out of Memory' ? 'config' : 'damaged',
    what: `DuckDB cannot read the shards: ${kind === null ? 'an error' : `${kind} Error`}`,
    where: '',
    next:
      kind === 'Out of Memory'
        ? 'Divide the directory, and call it for each part.'
        : 'Run `verify` to see which shards are damaged.',
  })
}
