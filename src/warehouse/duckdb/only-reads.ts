import type { DuckDBConnection } from '@duckdb/node-api'
import { ExportError } from '../../core/index.ts'

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
 * Sees that SQL is one SELECT, or EXPLAIN of one, that uses nothing which writes. DuckDB's own parser decides: it turns
 * a SELECT into JSON, and refuses to do so for everything else. Of EXPLAIN it is asked what follows that word.
 * @throws ExportError `config`
 */
export async function requireOnlyReads(connection: DuckDBConnection, sql: string): Promise<void> {
  const explained = sql.replace(EXPLAIN, '')
  const reader = await connection.runAndReadAll('SELECT json_serialize_sql($1::VARCHAR)', [explained])
  const parsed = JSON.parse(String(reader.getRowsJson()[0]?.[0])) as Parsed
  if (parsed.error) throw parsed.error_type === 'not implemented' ? onlyReads() : notParsed(parsed)
  const { statements } = parsed
  if (statements.length === 0) throw empty()
  if (statements.length !== 1) throw oneStatement(statements.length)
  const strange = tableFunctions(statements).find((name) => !TABLE_FUNCTIONS.has(name))
  if (strange !== undefined) throw notHere(strange)
}

type Parsed =
  | { readonly error: true; readonly error_type: string; readonly position?: string }
  | { readonly error: false; readonly statements: readonly unknown[] }

/** Their names, wherever they stand in a tree of DuckDB's parser. */
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

function empty(): ExportError {
  return new ExportError(
    'config',
    'The SQL is empty',
    '',
    'Give one SELECT, or leave it out: `query` then shows the columns.',
  )
}

function oneStatement(count: number): ExportError {
  return new ExportError(
    'config',
    `Expected one statement, found ${count}`,
    '',
    'Ask one question at a time.',
  )
}

function onlyReads(): ExportError {
  return new ExportError(
    'config',
    'Only SELECT, and EXPLAIN of a SELECT, is carried out here: nothing may be changed',
    '',
    'Load the data set into a database of your own to change it: `spillway load --to duckdb:<file>`.',
  )
}

function notHere(name: string): ExportError {
  return new ExportError(
    'config',
    `The table function ${name} is not available here: it does not only read rows`,
    '',
    'Ask the view, or load the data set into a database of your own: `spillway load --to duckdb:<file>`.',
  )
}

/** The message would quote the statement, which may hold what nobody else is to see. */
function notParsed({ position }: { readonly position?: string }): ExportError {
  const at = position === undefined ? '' : ` at character ${Number(position) + 1} of the SQL`
  return new ExportError(
    'config',
    `DuckDB does not understand the SQL: Parser Error${at}`,
    '',
    'Correct the SQL.',
  )
}
