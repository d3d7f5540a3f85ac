import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { DuckDBInstance, type JS } from '@duckdb/node-api'
import { parse } from 'csv-parse/sync'
import { microsOf, type Row, type Value } from './rows.ts'

let connection: ReturnType<DuckDBInstance['connect']> | null = null

export async function sql(query: string): Promise<Record<string, JS>[]> {
  connection ??= DuckDBInstance.create(':memory:', { threads: '1' }).then((duckdb) => duckdb.connect())
  return (await (await connection).runAndReadAll(query)).getRowObjectsJS()
}

/** Paths of all shards of a data set, relative to it: every file that engines do not skip. */
export async function shardPaths(output: string): Promise<string[]> {
  const entries = await readdir(output, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(output, join(entry.parentPath, entry.name)))
    .filter((path) => !path.split('/').some((name) => name.startsWith('_')))
    .sort()
}

export async function readRows(output: string): Promise<Row[]> {
  const isCsv = (await shardPaths(output)).some((path) => path.includes('.csv'))
  return (isCsv ? readCsv : readParquet)(output)
}

export async function readParquet(output: string): Promise<Row[]> {
  const paths = await shardPaths(output)
  if (paths.length === 0) return []
  const files = `[${paths.map((path) => `'${join(output, path).replaceAll("'", "''")}'`)}]`
  const table = `read_parquet(${files}, hive_partitioning = false)`
  const terms = (await sql(`describe select * from ${table}`)).map(({ column_name, column_type }) => {
    const name = `"${column_name}"`
    if (String(column_type).startsWith('TIMESTAMP')) return `epoch_us(${name})::varchar as ${name}`
    return column_type === 'BIGINT' ? `${name}::varchar as ${name}` : name
  })
  return (await sql(`select ${terms} from ${table}`)) as Row[]
}

export async function readCsv(output: string): Promise<Row[]> {
  const rows: Row[] = []
  for (const path of await shardPaths(output))
    for (const record of csvRecords(await readText(join(output, path)))) rows.push(typed(record))
  return rows
}

export async function readCsvByDuckdb(output: string): Promise<Row[]> {
  const rows: Row[] = []
  for (const path of await shardPaths(output)) {
    const file = join(output, path)
    const header = (await readText(file)).split('\n', 1)[0]!.split(',')
    const columns = header.map((name) => `'${name}': 'VARCHAR'`)
    const records = await sql(`select * from read_csv('${file}', header = true, auto_detect = false,
      columns = {${columns}}, delim = ',', quote = '"', escape = '"', new_line = '\\n', nullstr = '',
      allow_quoted_nulls = false, hive_partitioning = false)`)
    for (const record of records) rows.push(typed(record as Record<string, string | null>))
  }
  return rows
}

async function readText(file: string): Promise<string> {
  const bytes = await readFile(file)
  return (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
}

/** Null is an empty field; the empty string is a quoted one. */
function csvRecords(text: string): Record<string, string | null>[] {
  return parse(text, {
    columns: true,
    record_delimiter: '\n',
    cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
  })
}

const TIMES = 'imported_at source_breached_at source_leaked_at created_at published_at updated_at'
const TIMESTAMPS: ReadonlySet<string> = new Set(TIMES.split(' '))
const LISTS: ReadonlySet<string> = new Set(
  'auth_domains urls tags highlights related_activity_uids'.split(' '),
)

function typed(record: Readonly<Record<string, string | null>>): Row {
  return Object.fromEntries(Object.entries(record).map(([name, field]) => [name, cell(name, field)]))
}

function cell(name: string, field: string | null): Value {
  if (field === null) return null
  if (LISTS.has(name)) return JSON.parse(field) as string[]
  if (name === 'source_is_alert_enabled') return field === 'true' ? true : field === 'false' ? false : field
  if (!TIMESTAMPS.has(name)) return field
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(field)) throw new Error(`${name}: no such timestamp`)
  return String(microsOf(field))
}
