import {
  chooseRows,
  countRows,
  decodeFrame,
  encodeFrame,
  type Frame,
  int64,
  int64ToJson,
  type RowChoice,
  type Span,
  type Times,
  takeRows,
} from '../core/index.ts'
import { type WeighedFrame, weigh } from './chunk-measure.ts'

/** The rows of one page. */
export class PageRows {
  /** See `encodeFrame`. */
  readonly bytes: Uint8Array
  /** The same as views on the bytes. */
  readonly frame: Frame
  /** `imported_at` of each; null: they have none. */
  readonly times: Times | null
  #weights: WeighedFrame | null = null

  constructor(bytes: Uint8Array, times: Times | null) {
    this.bytes = bytes
    this.frame = decodeFrame(bytes)
    this.times = times
  }

  get weights(): WeighedFrame {
    this.#weights ??= weigh(this.frame)
    return this.#weights
  }
}

/** Rows of a page that go into one folder. */
export type Piece = {
  readonly page: PageRows
  readonly folder: string
  readonly rows: RowChoice
  /** Whose rows they are, one stretch after the other. */
  readonly stretches: readonly Stretch[]
}

/** So many rows of a partition, given by its key. */
export type Stretch = { readonly partition: string; readonly rows: number }

/** Rows `[from, to)` of a piece. */
export function cutPiece(piece: Piece, from: number, to: number): Piece {
  if (from === 0 && to === countRows(piece.rows)) return piece
  const stretches: Stretch[] = []
  let start = 0
  for (const { partition, rows } of piece.stretches) {
    const left = Math.min(start + rows, to) - Math.max(start, from)
    if (left > 0) stretches.push({ partition, rows: left })
    start += rows
  }
  return { ...piece, rows: chooseRows(piece.rows, from, to), stretches }
}

/** A frame of a piece's rows alone: the page's own bytes where it has no others. */
export function frameOf({ page, rows }: Piece): Uint8Array {
  const isWhole = countRows(rows) === page.frame.rows && !(rows instanceof Uint32Array)
  return isWhole ? page.bytes : encodeFrame(takeRows(page.frame, rows))
}

/** Least and greatest `imported_at` of rows `[from, to)` of a piece; null: they have none. */
export function importedAt({ page: { times }, rows }: Piece, from: number, to: number): Span | null {
  if (times === null || from === to) return null
  if (times instanceof Float64Array && !(rows instanceof Uint32Array)) {
    return spanOfDoubles(times, rows.from + from, rows.from + to)
  }
  const at = (index: number): number | bigint =>
    times[rows instanceof Uint32Array ? rows[index]! : rows.from + index]!
  let min = at(from)
  let max = min
  for (let index = from + 1; index < to; index++) {
    const time = at(index)
    if (time < min) min = time
    if (time > max) max = time
  }
  return { min: int64ToJson(int64(min)), max: int64ToJson(int64(max)) }
}

/** The same as nearly all rows have it. */
function spanOfDoubles(times: Float64Array, from: number, to: number): Span {
  let min = times[from]!
  let max = min
  for (let row = from + 1; row < to; row++) {
    const time = times[row]!
    if (time < min) min = time
    if (time > max) max = time
  }
  return { min, max }
}
