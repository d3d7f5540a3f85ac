import { type ColumnSpec, type ColumnType, ExportError } from '../../core/index.ts'
import type { TableSpec } from './table.ts'

/** A column as the database describes it. */
export type FoundColumn = { readonly name: string; readonly type: string; readonly nullable: boolean }

/**
 * Holds a table that is there against the one that the rows need.
 * @param types names of the types as the database gives them back
 * @returns columns to be added
 * @throws ExportError `config` with every difference, when it doesn't fit
 */
export function missingColumns(
  table: TableSpec,
  found: readonly FoundColumn[],
  types: Readonly<Record<ColumnType, string>>,
  { evolve }: { readonly evolve: boolean },
): readonly ColumnSpec[] {
  const there = new Map(found.map((column) => [column.name, column]))
  const differences: string[] = []
  const missing: ColumnSpec[] = []
  for (const column of table.columns) {
    const { name, type, nullable } = column
    const is = there.get(name)
    if (is !== undefined && is.type !== types[type]) {
      differences.push(`${name} is ${is.type} and should be ${types[type]}`)
    } else if (is === undefined && nullable && evolve) missing.push(column)
    else if (is === undefined) {
      differences.push(`${name} ${types[type]} is missing${nullable ? ' (--evolve adds it)' : ''}`)
    }
  }
  const wanted = new Set(table.columns.map(({ name }) => name))
  for (const { name, nullable } of found) {
    if (!wanted.has(name) && !nullable)
      differences.push(`${name} may not be null, and the rows have no such column`)
  }
  if (differences.length === 0) return missing
  throw new ExportError(
    'config',
    `The table does not fit the rows: ${differences.join('; ')}`,
    table.schema === null ? table.name : `${table.schema}.${table.name}`,
    'Choose another --table, add what is missing with --evolve, or change the table; nothing was changed.',
  )
}
