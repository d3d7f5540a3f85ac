import type { ColumnType } from '../core/index.ts'
import { type FoundColumn, missingColumns } from './fit.ts'
import { columnLines, identifier, literal, qualified, type TableSpec } from './table.ts'
import { viewsOf } from './views.ts'
import { LEDGER } from './warehouse.ts'

/** What differs between databases in how a table is made. */
export type TableMaker = {
  readonly run: (sql: string) => Promise<unknown>
  /** Columns of the table as the database describes them; none when it is not there. */
  readonly findColumns: () => Promise<readonly FoundColumn[]>
  /** Names of the types as the database gives them back. */
  readonly types: Readonly<Record<ColumnType, string>>
  /** What a new table is remarked with; null: nothing. */
  readonly remark: string | null
  /** What the ledger's table says behind its columns. */
  readonly ledgerKey: string
}

/** Makes table, ledger and views, or sees that they fit. @throws ExportError `config` with the difference */
export async function prepareTable(
  { run, findColumns, types, remark, ledgerKey }: TableMaker,
  table: TableSpec,
  options: { readonly evolve: boolean },
): Promise<void> {
  const name = qualified(table, table.name)
  const ledger = qualified(table, LEDGER)
  if (table.schema !== null) await run(`CREATE SCHEMA IF NOT EXISTS ${identifier(table.schema)}`)
  const found = await findColumns()
  const added = found.length === 0 ? [] : missingColumns(table, found, types, options)
  if (found.length === 0) {
    await run(`CREATE TABLE ${name} (\n${columnLines(table.columns, types)}\n)`)
    if (remark !== null) await run(`COMMENT ON TABLE ${name} IS ${literal(remark)}`)
  }
  for (const { name: column, type } of added) {
    await run(`ALTER TABLE ${name} ADD COLUMN ${identifier(column)} ${types[type]}`)
  }
  if (found.length === 0 || added.length > 0) {
    for (const { name: column, meaning } of table.columns) {
      await run(`COMMENT ON COLUMN ${name}.${identifier(column)} IS ${literal(meaning)}`)
    }
  }
  const { text, int64, timestamp, list } = types
  await run(
    `CREATE TABLE IF NOT EXISTS ${ledger} (data_set ${text} NOT NULL, shard ${text} NOT NULL, sha256 ${text} NOT NULL, rows ${int64} NOT NULL, loaded_at ${timestamp} NOT NULL, table_name ${text} NOT NULL, partitions ${list} NOT NULL${ledgerKey})`,
  )
  for (const { name: view, meaning, select } of viewsOf(table, ledger)) {
    await run(`CREATE OR REPLACE VIEW ${qualified(table, view)} AS ${select}`)
    await run(`COMMENT ON VIEW ${qualified(table, view)} IS ${literal(meaning)}`)
  }
}
