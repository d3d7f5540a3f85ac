import type { Column, TextVector } from '../../rows/index.ts'
import { MASK_ROOM, type Mask } from '../mask/mask.ts'
import { STATE } from '../scan/item-fields.ts'
import type { FieldRun } from '../scan/item-walker.ts'
import { type ColumnList, IndexList, Validity } from './lists.ts'
import { unescapeJson } from './unescape-json.ts'

const FIRST_BYTES = 1 << 16
const MAX_KEPT_BYTES = 1 << 24
/** Below this, a loop copies faster than the call of a built-in does. */
const SHORT_COPY = 48

/** A column of texts under construction. */
export type TextColumn = ColumnList & {
  addNull(): void
  addText(text: string): void
  addRun(run: FieldRun, field: number): void
}

/** Texts end to end in one run of UTF-8 bytes, masked as they arrive. */
export class TextList implements TextColumn {
  /** The texts; valid up to {@link end}. Replaced when it grows. */
  bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  end = 0
  readonly #offsets = new IndexList()
  readonly #validity = new Validity()

  readonly #mask: Mask | null

  constructor(mask: Mask | null = null) {
    this.#mask = mask
    this.#offsets.add(0)
  }

  get length(): number {
    return this.#validity.length
  }

  addNull(): void {
    this.#offsets.add(this.end)
    this.#validity.add(false)
  }

  addText(text: string): void {
    this.#reserve(3 * text.length)
    this.#close(this.end + this.bytes.write(text, this.end))
  }

  /** Adds the text of a JSON string at [start, end), quotes excluded; it must be valid. */
  addJson(from: Uint8Array, start: number, end: number, hasEscapes: boolean): void {
    this.#reserve(end - start)
    if (hasEscapes) this.#close(unescapeJson(from, start, end, this.bytes, this.end))
    else this.#addPlain(from, start, end)
  }

  addBytes(from: Uint8Array, start: number, end: number): void {
    this.#reserve(end - start)
    this.#addPlain(from, start, end)
  }

  addRun(run: FieldRun, field: number): void {
    const nulls = run.gather(field)
    if (nulls < 0 || this.#mask !== null) {
      this.#addEach(run)
      return
    }
    const { rows, offsets } = run
    const length = offsets[rows - 1]!
    this.#reserve(length)
    this.bytes.set(run.texts.subarray(0, length), this.end)
    this.#offsets.addAll(offsets, rows, this.end)
    this.#validity.addAll(run.states, rows, nulls)
    this.end += length
  }

  vector(): TextVector {
    return {
      kind: 'text',
      offsets: this.#offsets.view(),
      bytes: this.bytes.subarray(0, this.end),
      valid: this.#validity.view(),
    }
  }

  column(name: string): Column {
    return { name, group: null, values: this.vector() }
  }

  reset(): void {
    this.end = 0
    this.#offsets.reset()
    this.#offsets.add(0)
    this.#validity.reset()
    if (this.bytes.length > MAX_KEPT_BYTES) this.bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  }

  #addEach({ rows, states, starts, ends, bytes }: FieldRun): void {
    for (let row = 0; row < rows; row++) {
      const state = states[row]
      if (state === STATE.null) this.addNull()
      else this.addJson(bytes, starts[row]!, ends[row]!, state === STATE.escapedText)
    }
  }

  #addPlain(from: Uint8Array, start: number, end: number): void {
    const to = this.bytes
    let at = this.end
    if (end - start < SHORT_COPY) for (let i = start; i < end; i++) to[at++] = from[i]!
    else {
      to.set(from.subarray(start, end), at)
      at += end - start
    }
    this.#close(at)
  }

  #close(end: number): void {
    this.end = this.#mask === null ? end : this.#mask(this.bytes, this.end, end)
    this.#offsets.add(this.end)
    this.#validity.add(true)
  }

  #reserve(length: number): void {
    const needed = this.end + length + MASK_ROOM
    if (needed <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.bytes.length, needed))
    this.bytes.copy(larger, 0, 0, this.end)
    this.bytes = larger
  }
}

export class ListList implements ColumnList {
  readonly items = new TextList()
  readonly #offsets = new IndexList()
  readonly #validity = new Validity()

  constructor() {
    this.#offsets.add(0)
  }

  /** Ends a list: the items added since the last call are its own. */
  close(isThere: boolean): void {
    this.#offsets.add(this.items.length)
    this.#validity.add(isThere)
  }

  add(texts: readonly string[] | null): void {
    for (const text of texts ?? []) this.items.addText(text)
    this.close(texts !== null)
  }

  column(name: string): Column {
    const offsets = this.#offsets.view()
    const values = {
      kind: 'list',
      offsets,
      items: this.items.vector(),
      valid: this.#validity.view(),
    } as const
    return { name, group: null, values }
  }

  reset(): void {
    this.items.reset()
    this.#offsets.reset()
    this.#offsets.add(0)
    this.#validity.reset()
  }
}

export function textVector(texts: readonly (string | null)[]): TextVector {
  const parts = texts.map((text) => Buffer.from(text ?? ''))
  const offsets = new Uint32Array(texts.length + 1)
  for (const [i, part] of parts.entries()) offsets[i + 1] = offsets[i]! + part.length
  const valid = texts.includes(null) ? Uint8Array.from(texts, (text) => (text === null ? 0 : 1)) : null
  return { kind: 'text', offsets, bytes: Buffer.concat(parts), valid }
}
