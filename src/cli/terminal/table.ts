import { type Colour, fitTo, type Style, widthOf } from './screen.ts'
import { plainLine } from './text.ts'

export type Column<Row> = {
  readonly title: string
  readonly cell: (row: Row) => string
  readonly align?: 'left' | 'right'
  /** The least width if the table is too wide; undefined: the column is never cut. */
  readonly least?: number
  /** Dropped if the table is still too wide; the last such column first. */
  readonly isOptional?: boolean
  readonly colour?: (row: Row) => Colour | null
  /** Shown even if all its cells are empty. */
  readonly isKept?: boolean
}

export type Table<Row> = {
  readonly columns: readonly Column<Row>[]
  /** Called twice: for the widths and for the lines. */
  readonly rows: () => Iterable<Row>
  /** Lines below that of a row. */
  readonly below?: (row: Row) => readonly string[]
}

const GAP = '  '

/**
 * Lines of a table, its titles first. Empty columns are left out.
 * @param room columns of the terminal; null: as wide as it comes
 */
export function* alignedTable<Row>(
  { columns, rows, below }: Table<Row>,
  room: number | null,
  style: Style,
): Generator<string> {
  const fitted = fittedColumns(columns, rows(), room)
  const titles = fitted.map(({ column: { title, align }, width }) => fitTo(title, width, align))
  yield style('dim', titles.join(GAP).trimEnd())
  for (const row of rows()) {
    const cells = fitted.map(({ column: { cell, align, colour }, width }) => {
      const text = fitTo(cell(row), width, align)
      const painted = colour?.(row) ?? null
      return painted === null ? text : style(painted, text)
    })
    yield cells.join(GAP).trimEnd()
    yield* below?.(row) ?? []
  }
}

type Fitted<Row> = { readonly column: Column<Row>; readonly width: number }

function fittedColumns<Row>(
  columns: readonly Column<Row>[],
  rows: Iterable<Row>,
  room: number | null,
): readonly Fitted<Row>[] {
  const widths = columns.map(() => 0)
  for (const row of rows) {
    for (const [i, { cell }] of columns.entries()) widths[i] = Math.max(widths[i]!, widthOf(cell(row)))
  }
  const fitted = columns.flatMap((column, i): Fitted<Row>[] => {
    const width = widths[i]!
    return width === 0 && !column.isKept ? [] : [{ column, width: Math.max(width, widthOf(column.title)) }]
  })
  return room === null ? fitted : within(room, fitted)
}

/** Drops optional columns until the rest can be cut to fit; the widest columns are cut first. */
function within<Row>(room: number, columns: readonly Fitted<Row>[]): readonly Fitted<Row>[] {
  const leastOf = ({ column, width }: Fitted<Row>): number => Math.min(width, column.least ?? width)
  const widthWith = (of: (each: Fitted<Row>) => number): number =>
    columns.reduce((sum, each) => sum + GAP.length + of(each), -GAP.length)
  const dropped = columns.findLast(({ column }) => column.isOptional)
  if (widthWith(leastOf) > room && dropped !== undefined) {
    return within(
      room,
      columns.filter((each) => each !== dropped),
    )
  }
  const atMost = (limit: number) => (each: Fitted<Row>) =>
    Math.max(Math.min(each.width, limit), leastOf(each))
  let limit = Math.max(...columns.map(({ width }) => width))
  while (limit > 0 && widthWith(atMost(limit)) > room) limit--
  return columns.map((each) => ({ ...each, width: atMost(limit)(each) }))
}

/** The least width to which a cell is cut before its line is longer than the terminal. */
const MIN_COLUMN_WIDTH = 6

/** Whether no line of a table is longer than the terminal once its columns are cut. */
export function fitsInto<Row>({ columns, rows }: Table<Row>, room: number): boolean {
  const fitted = fittedColumns(columns, rows(), room)
  return fitted.reduce((sum, { width }) => sum + GAP.length + width, -GAP.length) <= room
}

/** A table of the result of a query, numbers on the right; null and undefined are empty. */
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
      least: MIN_COLUMN_WIDTH,
      isKept: true,
    })),
    rows: () => rows,
  }
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return plainLine(typeof value === 'object' ? JSON.stringify(value) : String(value))
}
