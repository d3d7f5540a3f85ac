import type { ColumnSpec } from '../../rows/index.ts'
import { MANIFEST_LINES } from '../../state/index.ts'
import { LEDGER_COLUMNS } from '../table/prepare-table.ts'
import { columnLines, LEDGER } from '../table/table.ts'
import {
  commentLines,
  type DdlInput,
  hiveColumns,
  type SyncInput,
  type Syntax,
  tableColumns,
} from './dialect.ts'

/** What differs between engines in how a table follows a data set. */
type Following = Syntax & {
  /** The statement that makes the table if it is missing, and what else has to be there. */
  readonly tables: readonly string[]
  /** A list of texts from its JSON. */
  readonly listFrom: (json: string) => string
  /** The name of a table, qualified; default: quoted. */
  readonly into?: (name: string) => string
  /** SQL that selects the lines of the manifest, as `line`. */
  readonly lines: string
  /** The text that the only group of a pattern matches; null or empty: none. */
  readonly match: (text: string, pattern: string) => string
  /** The statements that make the list of shards, {@link listOf}. */
  readonly makeList: (select: string) => readonly string[]
  /** The statements that begin and end a transaction. */
  readonly transaction?: readonly [begin: string, commit: string]
  readonly deleteFrom?: (table: string, where: string) => string
  /** Copies the rows of the shards whose state is `missing`. */
  readonly copy: readonly string[]
  readonly now?: string
}

/** The name of the list of shards of a table. */
export function listOf(table: string): string {
  return `${table}_spillway_manifest`
}

/** The end of a file's path that is the path of a shard. It has no group within, which some engines would take. */
export function shardPattern(input: SyncInput): string {
  return `(${'[^/]+/'.repeat(hiveColumns(input).length + 1)}[^/]+)$`
}

/** The statement that makes the ledger if it is missing, as `load` makes it. */
export function ledgerTable({ types, quoted }: Syntax, into = quoted): string {
  return `CREATE TABLE IF NOT EXISTS ${into(LEDGER)} (\n${columnLines(LEDGER_COLUMNS, types, quoted)}\n)`
}

/** The statements that make the table, with a comment for each column, and the ledger, if they are missing. */
export function commentedTables({ table, columns }: DdlInput, syntax: Syntax): readonly string[] {
  const lines = commentLines(tableColumns(columns), syntax, ' NOT NULL')
  return [`CREATE TABLE IF NOT EXISTS ${syntax.quoted(table)} (\n${lines}\n)`, ledgerTable(syntax)]
}

/** Statements that give an older table the columns that the data set has gained. */
export function addColumns(
  { added }: DdlInput,
  table: string,
  { types, quoted }: Syntax,
  typeOf = ({ type }: ColumnSpec) => types[type],
): readonly string[] {
  return added.map(
    (column) => `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${quoted(column.name)} ${typeOf(column)}`,
  )
}

/**
 * An entry is written after the rows, once they are counted, and deleted before them. So what a stopped script left is
 * deleted by the next one, and copied again. If the manifest cannot be read, the list is empty, and nothing is deleted.
 */
export function syncScript({ pipeline, table, manifest }: SyncInput, engine: Following): string {
  const { types, quoted, text, into = quoted, match, now = 'CURRENT_TIMESTAMP' } = engine
  const {
    transaction: [begin, commit] = [],
    deleteFrom = (name: string, where: string) => `DELETE FROM ${name}\nWHERE ${where}`,
  } = engine
  const [rows, ledger, list, name] = [into(table), into(LEDGER), quoted(listOf(table)), text(table)]
  const counted = `(SELECT spillway_data_set AS data_set, spillway_shard AS shard, count(*) AS n FROM ${rows} GROUP BY spillway_data_set, spillway_shard) t ON t.data_set = c.data_set AND t.shard = c.shard`
  const found = (part: keyof typeof MANIFEST_LINES): string =>
    `coalesce(${match('line', MANIFEST_LINES[part])}, '')`
  // Names of their own: some engines take a name of the result for one of its source.
  const listed = `SELECT max(found_data_set) OVER () AS data_set, found_path AS shard, found_sha256 AS sha256,
    CAST(coalesce(nullif(found_rows, ''), '0') AS ${types.int64}) AS n, found_partitions AS partitions
  FROM (
    SELECT ${found('dataSet')} AS found_data_set,
      ${found('path')} AS found_path,
      ${found('rows')} AS found_rows,
      ${found('sha256')} AS found_sha256,
      ${found('partitions')} AS found_partitions
    FROM (${engine.lines}) m
  ) p
  WHERE found_data_set <> '' OR found_path <> ''`
  const entries = `table_name = ${name} AND data_set IN (SELECT data_set FROM ${list})`
  const whole = `(SELECT shard FROM ${list} WHERE state = 'whole')`
  const columns = LEDGER_COLUMNS.map((column) => quoted(column.name)).join(', ')
  const script = [
    ...engine.tables,
    ...engine.makeList(`SELECT c.data_set AS data_set, c.shard AS shard, c.sha256 AS sha256, c.n AS n, c.partitions AS partitions,
  CASE WHEN c.shard = '' THEN 'data set' WHEN l.sha256 = c.sha256 AND coalesce(t.n, 0) = c.n THEN 'whole' ELSE 'missing' END AS state
FROM (
  ${listed}
) c
LEFT JOIN (SELECT data_set, shard, max(sha256) AS sha256 FROM ${ledger} WHERE table_name = ${name} GROUP BY data_set, shard) l ON l.data_set = c.data_set AND l.shard = c.shard
LEFT JOIN ${counted}`),
    ...(begin === undefined ? [] : [begin]),
    deleteFrom(ledger, `${entries} AND shard NOT IN ${whole}`),
    deleteFrom(
      rows,
      `spillway_data_set IN (SELECT data_set FROM ${list}) AND coalesce(spillway_shard, '') NOT IN ${whole}`,
    ),
    // Readers fail if there is no file.
    ...(manifest.shards.length === 0 ? [] : engine.copy),
    `INSERT INTO ${ledger} (${columns})
SELECT c.data_set, c.shard, c.sha256, c.n, ${now}, ${engine.listFrom('c.partitions')}, ${name}, ${text(pipeline)}
FROM ${list} c
LEFT JOIN ${counted}
WHERE c.state = 'missing' AND coalesce(t.n, 0) = c.n`,
    ...(commit === undefined ? [] : [commit]),
    `-- An error here: the manifest, or a shard, could not be read. What was loaded is right; run the script again.
SELECT CAST(CASE WHEN c.n = l.n + 1 THEN '0' ELSE 'spillway: not every shard is loaded' END AS ${types.int64}) AS missing
FROM (SELECT count(*) AS n FROM ${list}) c, (SELECT count(DISTINCT shard) AS n FROM ${ledger} WHERE ${entries}) l`,
  ]
  return `-- Brings the table in line with the manifest of the data set. Stopped anywhere, run it again.
${script.join(';\n\n')};\n`
}
