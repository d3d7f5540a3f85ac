import { crc32 } from 'node:zlib'
import { countRows, type Frame, type Group, type RowChoice, type TextVector } from '../core/index.ts'

// Keeps memory bounded when values are long.
const MAX_BYTES = 16 << 20
/** Where a chunk may end before it has all its rows: a row more or less changes nothing. */
const GRAIN = 1000

/**
 * Columns of texts that many rows share, whichever way a page puts them: they count once in a chunk, as they are stored
 * once. All others count with every row.
 */
const SHARED = /^(?:source_|query_)/

/**
 * How full a chunk is. Where it ends depends on its rows alone, not on the pages or frames that these came in: so many
 * rows, or the first thousand at which its texts come to 16 MB.
 */
export class ChunkMeasure {
  readonly #maxRows: number
  #rows = 0
  #bytes = 0
  #isFull = false
  /** Checksums of the shared texts that were counted. */
  #counted = new Set<number>()

  constructor(maxRows: number) {
    this.#maxRows = maxRows
  }

  get rows(): number {
    return this.#rows
  }

  get isFull(): boolean {
    return this.#isFull
  }

  reset(): void {
    this.#rows = 0
    this.#bytes = 0
    this.#isFull = false
    this.#counted.clear()
  }

  /** Takes rows from a place on, as many as there is room for. @returns how many */
  take(frame: WeighedFrame, rows: RowChoice, from: number, most: number): number {
    const { own, groups } = frame
    const seen = groups.map(({ size }) => new Uint8Array(size))
    const end = Math.min(countRows(rows), from + most)
    let index = from
    while (index < end && !this.#isFull) {
      const row = rows instanceof Uint32Array ? rows[index]! : rows.from + index
      this.#bytes += own[row]!
      for (let g = 0; g < groups.length; g++) {
        const { entries, indices } = groups[g]!
        const entry = indices === null ? 0 : indices[row]!
        if (seen[g]![entry] === 1) continue
        seen[g]![entry] = 1
        const { checksum, bytes } = entries(entry)
        if (this.#counted.has(checksum)) continue
        this.#counted.add(checksum)
        this.#bytes += bytes
      }
      this.#rows++
      index++
      this.#isFull = this.#rows === this.#maxRows || (this.#rows % GRAIN === 0 && this.#bytes >= MAX_BYTES)
    }
    return index - from
  }
}

/** What the rows of a frame weigh. */
export type WeighedFrame = {
  /** Bytes of the texts that each row has to itself. */
  readonly own: Float64Array
  readonly groups: readonly {
    readonly size: number
    readonly indices: Uint32Array | null
    entries(entry: number): { readonly checksum: number; readonly bytes: number }
  }[]
}

export function weigh(frame: Frame): WeighedFrame {
  const own = new Float64Array(frame.rows)
  const shared = new Map<Group, TextVector[]>()
  for (const { name, group, values } of frame.columns) {
    const table = group === null ? null : frame.groups[group]!
    const texts = values.kind === 'list' ? values.items : values
    if (texts.kind !== 'text') continue
    if (table !== null && SHARED.test(name) && values.kind === 'text') {
      const columns = shared.get(table)
      if (columns === undefined) shared.set(table, [values])
      else columns.push(values)
      continue
    }
    const lengthAt =
      values.kind === 'list'
        ? (at: number) => texts.offsets[values.offsets[at + 1]!]! - texts.offsets[values.offsets[at]!]!
        : (at: number) => texts.offsets[at + 1]! - texts.offsets[at]!
    const indices = table?.indices ?? null
    if (table === null) for (let row = 0; row < own.length; row++) own[row]! += lengthAt(row)
    else
      for (let row = 0; row < own.length; row++) own[row]! += lengthAt(indices === null ? 0 : indices[row]!)
  }
  const groups = [...shared].map(([{ size, indices }, columns]) => ({
    size,
    indices,
    entries: (entry: number) => entryOf(columns, entry),
  }))
  return { own, groups }
}

function entryOf(columns: readonly TextVector[], entry: number): { checksum: number; bytes: number } {
  let checksum = 0
  let bytes = 0
  for (const [place, { offsets, bytes: texts }] of columns.entries()) {
    const text = texts.subarray(offsets[entry], offsets[entry + 1])
    checksum = crc32(text, (checksum ^ place) >>> 0)
    bytes += text.length
  }
  return { checksum, bytes }
}
