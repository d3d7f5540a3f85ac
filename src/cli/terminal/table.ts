import { type Colour, padTo, type Style, widthOf } from './screen.ts'
import { plainLine } from './text.ts'

export type Column<Row> = {
  readonly title: string
  readonly cell: (row: Row) => string
  readonly align?: 'left' | 'right'
  readonly colour?: (row: Row) => Colour | null
  /** Shown even if all its cells are empty. */
  readonly isKept?: boolean
}

export type Table<Row> = {
  readonly columns: readonly Column<Row>[]
  /** Called twice: for the widths and for the lines. */
  readonly rows: () => Iterable<Row>
  readonly below?: (row: Row) => readonly string[]
}

const GAP = '  '

/** Lines of a table, its titles first, as wide as they come. Empty columns are left out. */
export function* alignedTable<Row>(
  { columns: all, rows, below }: Table<Row>,
  style: Style,
): Generator<string> {
  const widths = all.map(() => 0)
  for (const row of rows()) {
    for (const [i, { cell }] of all.entries()) widths[i] = Math.max(widths[i]!, widthOf(cell(row)))
  }
  const columns = all.flatMap((column, i) =>
    widths[i] === 0 && !column.isKept
      ? []
      : [{ ...column, width: Math.max(widths[i]!, widthOf(column.title)) }],
  )
  const titles = columns.map(({ title, align, width }) => padTo(title, width, align))
  yield style('dim', titles.join(GAP).trimEnd())
  for (const row of rows()) {
    const cells = columns.map(({ cell, align, colour, width }) => {
      const text = padTo(cell(row), width, align)
      const painted = colour?.(row) ?? null
      return painted === null ? text : style(painted, text)
    })
    yield cells.join(GAP).trimEnd()
    yield* below?.(row) ?? []
  }
}

export function resultTable(
  names: readonly string[],
  rows: readonly (readonly unknown[])[],
): Table<readonly unknown[]> {
  const isNumber = (i: number): boolean =>
    rows.length > 0 && rows.every((row) => typeof row[i] === 'number' || row[i] === null)
  return {
    columns: names.map((name, i) => ({
      title: plainLine(name),
      cell: (row) => cellText(row[i]),
      align: isNumber(i) ? 'right' : 'left',
      isKept: true,
    })),
    rows: () => rows,
  }
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return plainLine(typeof value === 'object' ? JSON.stringify(value) : String(value))
}
