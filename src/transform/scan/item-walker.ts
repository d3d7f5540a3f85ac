import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { type Int64, int64 } from '../../core/index.ts'
import type { FieldRun } from '../columns/text-list.ts'
import { FIELDS } from './item-fields.ts'

/** Reads a source that is new to the walker, at [start, end) of its bytes; null: it is not understood. */
export type ReadSource<Source> = (bytes: Buffer, start: number, end: number) => Source | null

/** Numbers of a record: its fields, then what is said of it as a whole. */
export const RECORD_SLOTS = 16
const IS_SOURCE_ID = 13
const UNKNOWN = 14
const IS_LINE = 15
const KEY_BYTES = 64
/** Stands for the number of a source that is not kept. */
const NOT_KEPT = -2

/** Why a walk came to an end: no room for more records, behind the list, before an item that is not understood. */
export const STATUS = { full: 0, last: 1, unsupported: 2, newSource: 3 } as const

/** What is used of it; the types of Node.js say nothing of it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object) => { readonly exports: unknown }
  readonly CompileError: new () => Error
}

type Global = { readonly value: number }

/** What assembly/item-walker.ts exports. */
type Exports = {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly status: Global
  readonly position: Global
  readonly sourceStart: Global
  readonly sourceEnd: Global
  open(bytes: number): void
  walk(start: number): number
  endOfValue(at: number): number
  meet(source: number): void
  learn(start: number, length: number, idLength: number): number
  idOf(source: number): number
  gatherTexts(field: number, rows: number): number
} & Readonly<Record<Region, Global>>

type Region =
  | 'KEYS'
  | 'KEY_LENGTHS'
  | 'ALLOWED'
  | 'KINDS'
  | 'STARTS'
  | 'ENDS'
  | 'IDS'
  | 'TIMES'
  | 'SOURCES'
  | 'ITEMS'
  | 'KEPT'
  | 'RUN_STATES'
  | 'RUN_STARTS'
  | 'RUN_ENDS'
  | 'RUN_OFFSETS'
  | 'RUN_TEXTS'
  | 'UNKNOWN_FIELDS'
  | 'TEXTS'
  | 'BUFFER'
  | 'BUFFER_BYTES'

/**
 * A walk makes records of the items of a buffer, valid until the next walk. By `record * RECORD_SLOTS + field`, `kinds`
 * has the kind of a value, `starts` and `ends` its offsets in `bytes` (texts without their quotes). For lists they say
 * which of `texts`, three numbers each (start, end, 1 if it has escapes).
 */
export class ItemWalker<Source extends { readonly id: string }> {
  bytes!: Buffer
  kinds!: Uint8Array
  starts!: Uint32Array
  ends!: Uint32Array
  texts!: Uint32Array
  readonly run: RecordRun
  /** Microseconds since the epoch, by record. */
  times!: Float64Array
  /** Where the buffer ends in the response. */
  end = 0
  #ids!: Float64Array
  #sources!: Int32Array
  #items!: Uint32Array
  #unknownFields!: Uint32Array
  readonly #walker: Exports
  readonly #known: Source[] = []
  #notKept: Source | null = null
  #body: Buffer = Buffer.alloc(0)
  /** Where the buffer begins in the response. */
  #start = 0
  /** Position of the item whose source this buffer learned last. */
  #learnedAt = -1
  readonly #readSource: ReadSource<Source>

  constructor(walker: Exports, readSource: ReadSource<Source>) {
    this.#readSource = readSource
    this.#walker = walker
    this.run = new RecordRun()
    this.#look()
  }

  begin(body: Buffer): void {
    this.#body = body
    this.#start = 0
    this.end = 0
    this.run.rows = 0
  }

  /** Takes the next bytes of the response, from `at` on. @returns false when they are no UTF-8 */
  open(at: number): boolean {
    const body = this.#body
    const { BUFFER, BUFFER_BYTES } = this.#walker
    const length = Math.min(body.length - at, BUFFER_BYTES.value)
    this.#walker.open(length)
    this.bytes.set(body.subarray(at, at + length), BUFFER.value)
    this.#start = at
    this.#learnedAt = -1
    this.end = at + length
    // No record ends in a character that the buffer may have cut.
    let checked = BUFFER.value + length
    while (checked > BUFFER.value && this.bytes[checked - 1]! >= 0x80) checked--
    return isUtf8(this.bytes.subarray(BUFFER.value, checked))
  }

  /** Whether an item at `at` begins the buffer; or lies in its first half. */
  isFirst(at: number): boolean {
    return at === this.#start
  }

  isEarly(at: number): boolean {
    return at - this.#start < this.#walker.BUFFER_BYTES.value / 2
  }

  /** Makes records from position `at` in the response on. @returns how many */
  walk(at: number): number {
    return this.#walker.walk(this.#offset(at))
  }

  /** Where the value at `at` ends in the response; -1 when the buffer does not hold it and what follows it. */
  endOfValue(at: number): number {
    const end = this.#walker.endOfValue(this.#offset(at))
    return end === 0 ? -1 : this.#position(end)
  }

  get status(): number {
    return this.#walker.status.value
  }

  /** Where the walk ended in the response. */
  get position(): number {
    return this.#position(this.#walker.position.value)
  }

  itemStart(record: number): number {
    return this.#position(this.#items[record]!)
  }

  id(record: number): Int64 {
    const id = this.#ids[record]!
    if (!Number.isNaN(id)) return id
    const { bytes, starts, ends } = this
    const slot = record * RECORD_SLOTS
    return int64(BigInt(bytes.toString('latin1', starts[slot], ends[slot])))
  }

  source(record: number): Source {
    const source = this.#sources[record]!
    return source === NOT_KEPT ? this.#notKept! : this.#known[source]!
  }

  /** Whether the record's `source_id` is written as just the `id` of its source. */
  hasIdOfSource(record: number): boolean {
    return this.kinds[record * RECORD_SLOTS + IS_SOURCE_ID] === 1
  }

  /** Whether the identity of the record may be a line of a list: it has a `:`, `;`, `|` or an escape. */
  isLine(record: number): boolean {
    return this.kinds[record * RECORD_SLOTS + IS_LINE] === 1
  }

  /** Its unknown fields, as numbers for {@link unknownField}: the first, and the one after the last. */
  unknownFields(record: number): readonly [first: number, end: number] {
    const slot = record * RECORD_SLOTS + UNKNOWN
    return [this.starts[slot]!, this.ends[slot]!]
  }

  /** Offsets of an unknown field: start (0) and end (1) of its key, of its value (2, 3). */
  unknownField(field: number, part: 0 | 1 | 2 | 3): number {
    return this.#unknownFields[4 * field + part]!
  }

  /** False also for the second source of an item: two that are not kept would displace each other without end. */
  learn(): boolean {
    const { position } = this
    const walker = this.#walker
    if (position === this.#learnedAt) return false
    this.#learnedAt = position
    const start = walker.sourceStart.value
    const end = walker.sourceEnd.value
    const source = this.#readSource(this.bytes, start, end)
    if (source === null) return false
    const id = Buffer.from(source.id)
    const number = walker.learn(start, end - start, id.length)
    this.#look()
    if (number === 0) this.#known.length = 0
    if (number >= 0) {
      this.#known[number] = source
      this.bytes.set(id, walker.idOf(number))
    } else this.#notKept = source
    walker.meet(number >= 0 ? number : NOT_KEPT)
    return true
  }

  #offset(position: number): number {
    return this.#walker.BUFFER.value + position - this.#start
  }

  #position(offset: number): number {
    return offset - this.#walker.BUFFER.value + this.#start
  }

  /** Memory that has grown is another buffer. */
  #look(): void {
    const walker = this.#walker
    const { buffer } = walker.memory
    if (this.bytes?.buffer === buffer) return
    const view = (region: Region): [ArrayBuffer, number] => [buffer, walker[region].value]
    this.bytes = Buffer.from(buffer)
    this.kinds = new Uint8Array(...view('KINDS'))
    this.starts = new Uint32Array(...view('STARTS'))
    this.ends = new Uint32Array(...view('ENDS'))
    this.texts = new Uint32Array(...view('TEXTS'))
    this.#ids = new Float64Array(...view('IDS'))
    this.times = new Float64Array(...view('TIMES'))
    this.#sources = new Int32Array(...view('SOURCES'))
    this.#items = new Uint32Array(...view('ITEMS'))
    this.#unknownFields = new Uint32Array(...view('UNKNOWN_FIELDS'))
    this.run.look(walker, this.bytes)
  }
}

class RecordRun implements FieldRun {
  rows = 0
  kept!: Uint16Array
  states!: Uint8Array
  starts!: Uint32Array
  ends!: Uint32Array
  bytes!: Buffer
  texts!: Uint8Array
  offsets!: Uint32Array
  #walker!: Exports

  keep(record: number): void {
    this.kept[this.rows++] = record
  }

  gather(field: number): number {
    return this.#walker.gatherTexts(field, this.rows)
  }

  look(walker: Exports, bytes: Buffer): void {
    const view = (region: Region): [ArrayBuffer, number] => [walker.memory.buffer, walker[region].value]
    this.#walker = walker
    this.bytes = bytes
    this.kept = new Uint16Array(...view('KEPT'))
    this.states = new Uint8Array(...view('RUN_STATES'))
    this.starts = new Uint32Array(...view('RUN_STARTS'))
    this.ends = new Uint32Array(...view('RUN_ENDS'))
    this.texts = new Uint8Array(...view('RUN_TEXTS'))
    this.offsets = new Uint32Array(...view('RUN_OFFSETS'))
  }
}

/** Null where there is no WebAssembly with SIMD, or no memory for it. */
export function itemWalker<Source extends { readonly id: string }>(
  readSource: ReadSource<Source>,
): ItemWalker<Source> | null {
  const walker = instance()
  if (walker === null) return null
  const bytes = Buffer.from(walker.memory.buffer)
  for (const [field, [name, kinds]] of FIELDS.entries()) {
    const key = Buffer.from(`"${name}"`)
    const at = walker.KEYS.value + KEY_BYTES * field
    bytes.set(key, at)
    bytes.fill(0xff, at + KEY_BYTES / 2, at + KEY_BYTES / 2 + key.length)
    bytes[walker.KEY_LENGTHS.value + field] = key.length
    bytes[walker.ALLOWED.value + field] = kinds
  }
  return new ItemWalker(walker, readSource)
}

function instance(): Exports | null {
  // It is not there in a process without a compiler.
  if (typeof WebAssembly === 'undefined') return null
  try {
    const binary = readFileSync(new URL('item-walker.wasm', import.meta.url))
    return new WebAssembly.Instance(new WebAssembly.Module(binary)).exports as Exports
  } catch (error) {
    if (error instanceof WebAssembly.CompileError || error instanceof RangeError) return null
    throw error
  }
}
