import type { Column, Group } from '../../core/index.ts'
import { REDACTED } from '../mask/index.ts'
import { IndexList } from './lists.ts'
import { type FieldRun, STATE, TextList, textVector } from './text-list.ts'

/** A text column under construction: one value per row. */
export type TextColumn = {
  addNull(): void
  addText(text: string): void
  /** Adds a field of many rows. */
  addRun(run: FieldRun, field: number): void
  /** The finished column; a group it needs is appended to `groups`. */
  column(name: string, groups: Group[]): Column
  reset(): void
}

/** Adds a group; one whose rows all lie in its only entry needs no indices. */
export function addGroup(groups: Group[], size: number, indices: Uint32Array): number {
  return groups.push({ size, indices: size === 1 ? null : indices }) - 1
}

/** One value per row. */
export class PlainColumn extends TextList implements TextColumn {
  column(name: string): Column {
    return { name, group: null, values: this.vector() }
  }
}

/** The constant or null. */
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
/** Slots of the hash table: a power of two, four times the entries, so that chains of probes stay short. */
const SLOTS = 4096

/**
 * Distinct values in a table and an index per row, while the values are few. Every value is first appended to the
 * entries; if an equal one is there already, the copy is taken off again. The hash table is open: a slot holds an
 * entry's index plus one, 0 means empty.
 */
export class DictionaryColumn implements TextColumn {
  readonly #entries = new TextList()
  readonly #slots = new Uint16Array(SLOTS)
  readonly #indices = new IndexList()
  #nullEntry = -1
  /** Of the last text. */
  #lastEntry = 0
  /** Takes the values over, one per row, once they have turned out to be many. */
  readonly #rows = new PlainColumn()
  #isPlain = false

  addNull(): void {
    if (this.#isPlain) {
      this.#rows.addNull()
      return
    }
    if (this.#nullEntry < 0) {
      this.#nullEntry = this.#entries.length
      this.#entries.addNull()
    }
    this.#indices.add(this.#nullEntry)
  }

  addText(text: string): void {
    const list = this.#isPlain ? this.#rows : this.#entries
    list.addText(text)
    if (!this.#isPlain) this.#intern()
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
      if (state === STATE.null) this.addNull()
      else if (state === STATE.sameText && !this.#isPlain) this.#indices.add(this.#lastEntry)
      else this.#addJson(bytes, starts[row]!, ends[row]!, state === STATE.escapedText)
    }
  }

  column(name: string, groups: Group[]): Column {
    if (this.#isPlain) return this.#rows.column(name)
    const group = addGroup(groups, this.#entries.length, this.#indices.view())
    return { name, group, values: this.#entries.vector() }
  }

  reset(): void {
    this.#entries.reset()
    this.#slots.fill(0)
    this.#indices.reset()
    this.#nullEntry = -1
    this.#rows.reset()
    this.#isPlain = false
  }

  #addJson(from: Uint8Array, start: number, end: number, hasEscapes: boolean): void {
    const list = this.#isPlain ? this.#rows : this.#entries
    list.addJson(from, start, end, hasEscapes)
    if (!this.#isPlain) this.#intern()
  }

  /** Gives the row the entry just appended, or the equal one that was there before. */
  #intern(): void {
    const entry = this.#entries.length - 1
    const { bytes, end } = this.#entries
    const start = this.#entries.start(entry)
    let slot = hash(bytes, start, end) & (SLOTS - 1)
    for (let known = this.#slots[slot]!; known !== 0; known = this.#slots[slot]!) {
      if (this.#equals(known - 1, start, end)) {
        this.#entries.removeLast()
        this.#addEntry(known - 1)
        return
      }
      slot = (slot + 1) & (SLOTS - 1)
    }
    this.#slots[slot] = entry + 1
    this.#addEntry(entry)
    if (entry >= MAX_ENTRIES) this.#becomePlain()
  }

  #addEntry(entry: number): void {
    this.#lastEntry = entry
    this.#indices.add(entry)
  }

  #equals(entry: number, start: number, end: number): boolean {
    const { bytes } = this.#entries
    const known = this.#entries.start(entry)
    if (this.#entries.start(entry + 1) - known !== end - start) return false
    for (let i = 0; i < end - start; i++) if (bytes[known + i] !== bytes[start + i]) return false
    return true
  }

  #becomePlain(): void {
    this.#isPlain = true
    for (const entry of this.#indices.view()) {
      if (!this.#entries.isThere(entry)) this.#rows.addNull()
      else
        this.#rows.addBytes(this.#entries.bytes, this.#entries.start(entry), this.#entries.start(entry + 1))
    }
  }
}

/** FNV-1a with a final mix, because its low bits alone spread badly over a small table. */
function hash(bytes: Uint8Array, start: number, end: number): number {
  let h = 0x811c9dc5
  for (let i = start; i < end; i++) h = Math.imul(h ^ bytes[i]!, 0x01000193)
  return h ^ (h >>> 15)
}
