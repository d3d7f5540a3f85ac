import { ExportError, type Frame, type Group, type IntegerVector, type Vector } from '../../core/index.ts'

/** One column of one frame, with the frame's index of its group at hand. */
export type FrameColumn<Values extends Vector = Vector> = {
  readonly rows: number
  /** null: one value per row. */
  readonly group: Group | null
  readonly values: Values
}

export type VectorOf<Kind extends Vector['kind']> = Extract<Vector, { kind: Kind }>

/** The column of that name in every frame. @throws ExportError `damaged` as {@link frameColumn} */
export function frameColumns<Kind extends Vector['kind']>(
  frames: readonly Frame[],
  name: string,
  kind: Kind,
): FrameColumn<VectorOf<Kind>>[] {
  return frames.map((frame) => frameColumn(frame, name, kind))
}

/**
 * A column of whole numbers: in doubles, but for pages that have some which no double holds.
 * @throws ExportError `damaged` as {@link frameColumn}
 */
export function integerColumn(frame: Frame, name: string): FrameColumn<IntegerVector> {
  const isLarge = frame.columns.some((column) => column.name === name && column.values.kind === 'int64')
  return isLarge ? frameColumn(frame, name, 'int64') : frameColumn(frame, name, 'number')
}

/** @throws ExportError `damaged` when the frame has no such column, or holds another kind of values in it */
export function frameColumn<Kind extends Vector['kind']>(
  frame: Frame,
  name: string,
  kind: Kind,
): FrameColumn<VectorOf<Kind>> {
  const column = frame.columns.find((candidate) => candidate.name === name)
  if (column !== undefined && isKind(column.values, kind)) {
    const group = column.group === null ? null : frame.groups[column.group]!
    return { rows: frame.rows, group, values: column.values }
  }
  throw new ExportError(
    'damaged',
    `Rows have no ${kind} column ${name}`,
    '',
    'They were decoded by another version or plan; start again with --fresh.',
  )
}

function isKind<Kind extends Vector['kind']>(vector: Vector, kind: Kind): vector is VectorOf<Kind> {
  return vector.kind === kind
}
