import type { Colour, Style } from './style.ts'
import { fitTo, widthOf } from './width.ts'

export type Column<Row> = {
  readonly title: string
  readonly cell: (row: Row) => string
  readonly align?: 'left' | 'right'
  /** What it may be cut to where the table is too wide; left out: it is never cut. */
  readonly least?: number
  /** Left out, the last such first, where the table is too wide all the same. */
  readonly isOptional?: boolean
  readonly colour?: (row: Row) => Colour | null
}

export type Table<Row> = {
  readonly columns: readonly Column<Row>[]
  /** Gone through twice: for the widths, and for the lines. */
  readonly rows: () => Iterable<Row>
  /** Lines that follow that of a row. */
  readonly below?: (row: Row) => readonly string[]
}

const GAP = '  '

/**
 * Lines of a table, its titles first; made as they are asked for. Columns without any text are left out.
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
    return width === 0 ? [] : [{ column, width: Math.max(width, widthOf(column.title)) }]
  })
  return room === null ? fitted : within(room, fitted)
}

/** Leaves out what is optional until the rest fits when it is cut, and cuts it. */
function within<Row>(room: number, columns: readonly Fitted<Row>[]): readonly Fitted<Row>[] {
  const spare = ({ column, width }: Fitted<Row>): number => Math.max(0, width - (column.least ?? width))
  let excess = columns.reduce((sum, { width }) => sum + GAP.length + width, -GAP.length - room)
  const most = columns.reduce((sum, each) => sum + spare(each), 0)
  const dropped = columns.findLast(({ column }) => column.isOptional)
  if (excess > most && dropped !== undefined) {
    return within(
      room,
      columns.filter((each) => each !== dropped),
    )
  }
  return columns.map((each) => {
    const cut = Math.max(0, Math.min(excess, spare(each)))
    excess -= cut
    return { column: each.column, width: each.width - cut }
  })
}
