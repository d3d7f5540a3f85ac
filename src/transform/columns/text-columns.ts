import { type Column, type Group, TextDictionary } from '../../rows/index.ts'
import { REDACTED } from '../mask/mask.ts'
import { STATE } from '../scan/item-fields.ts'
import type { FieldRun } from '../scan/item-walker.ts'
import { IndexList } from './lists.ts'
import { type TextColumn, TextList, textVector } from './text-list.ts'
import { unescapeJson } from './unescape-json.ts'

/** Adds a group; one whose rows all lie in its only entry needs no indices. */
export function addGroup(groups: Group[], size: number, indices: Uint32Array): number {
  return groups.push({ size, indices: size === 1 ? null : indices }) - 1
}

export class RedactedColumn implements TextColumn {
  readonly #indices = new IndexList()
  #hasNull = false

  addNull(): void {
    this.#hasNull = true
    this.#indices.add(1)
  }

  addText(): void {
    this.#indices.add(0)
  }

  addRun(run: FieldRun, field: number): void {
    run.gather(field)
    const { rows, states } = run
    for (let row = 0; row < rows; row++) {
      if (states[row] === STATE.null) this.addNull()
      else this.#indices.add(0)
    }
  }

  column(name: string, groups: Group[]): Column {
    const entries = this.#hasNull ? [REDACTED, null] : [REDACTED]
    const group = addGroup(groups, entries.length, this.#indices.view())
    return { name, group, values: textVector(entries) }
  }

  reset(): void {
    this.#indices.reset()
    this.#hasNull = false
  }
}

/** Beyond so many distinct values a page gains nothing from a table. */
const MAX_ENTRIES = 1024
/** The index of rows without a text, until the table is whole: nulls are its last entry. */
const NULL = 0xffff_ffff

/** Distinct values in a table and an index per row, while the values are few. */
export class DictionaryColumn implements TextColumn {
  readonly #entries = new TextDictionary()
  readonly #indices = new IndexList()
  #hasNull = false
  /** Of the last text. */
  #lastEntry = 0
  /** Takes the values over, one per row, once they have turned out to be many. */
  readonly #rows = new TextList()
  #isPlain = false

  addNull(): void {
    if (this.#isPlain) {
      this.#rows.addNull()
      return
    }
    this.#hasNull = true
    this.#indices.add(NULL)
  }

  addText(text: string): void {
    const bytes = Buffer.from(text)
    this.#add(bytes, 0, bytes.length)
  }

  addRun(run: FieldRun, field: number): void {
    if (this.#isPlain) {
      this.#rows.addRun(run, field)
      return
    }
    run.gather(field)
    const { rows, states, starts, ends, bytes } = run
    for (let row = 0; row < rows; row++) {
      const state = states[row]
      const start = starts[row]!
      const end = ends[row]!
      if (state === STATE.null) this.addNull()
      else if (state === STATE.sameText && !this.#isPlain) this.#indices.add(this.#lastEntry)
      else if (state === STATE.escapedText) {
        const text = new Uint8Array(end - start)
        this.#add(text, 0, unescapeJson(bytes, start, end, text, 0))
      } else this.#add(bytes, start, end)
    }
  }

  column(name: string, groups: Group[]): Column {
    if (this.#isPlain) return this.#rows.column(name)
    const indices = this.#indices.view()
    const values = this.#entries.texts()
    const { count } = this.#entries
    if (!this.#hasNull) return { name, group: addGroup(groups, count, indices), values }
    for (let row = 0; row < indices.length; row++) if (indices[row] === NULL) indices[row] = count
    const offsets = Uint32Array.of(...values.offsets, values.bytes.length)
    const valid = new Uint8Array(count + 1).fill(1, 0, count)
    return { name, group: addGroup(groups, count + 1, indices), values: { ...values, offsets, valid } }
  }

  reset(): void {
    this.#entries.clear()
    this.#indices.reset()
    this.#hasNull = false
    this.#rows.reset()
    this.#isPlain = false
  }

  #add(from: Uint8Array, start: number, end: number): void {
    const entry = this.#isPlain ? -1 : this.#entries.intern(from, start, end)
    if (entry < 0 || entry >= MAX_ENTRIES) {
      this.#becomePlain()
      this.#rows.addBytes(from, start, end)
      return
    }
    this.#lastEntry = entry
    this.#indices.add(entry)
  }

  #becomePlain(): void {
    if (this.#isPlain) return
    this.#isPlain = true
    const { offsets, bytes } = this.#entries.texts()
    for (const entry of this.#indices.view()) {
      if (entry === NULL) this.#rows.addNull()
      else this.#rows.addBytes(bytes, offsets[entry]!, offsets[entry + 1]!)
    }
  }
}
