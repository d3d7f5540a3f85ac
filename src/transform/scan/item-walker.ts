import { isUtf8 } from 'node:buffer'
import { copyBytes, type Int64, int64, mayHoldManyValues } from '../../core/index.ts'
import type { FieldRun } from '../columns/text-list.ts'
import type { ColumnValue } from '../columns/value-columns.ts'
import type { ExtraReader } from '../extra/extra-reader.ts'
import { SOURCE_FIELDS, type Source, sourceSchema, unknownNames } from '../schema.ts'
import { FIELDS } from './item-fields.ts'
import { ITEM_WALKER } from './item-walker-wasm.ts'

/** A validated source and what a row needs of it. */
export type KnownSource = {
  readonly source: Source
  /** Names of its fields that nobody knows. */
  readonly unknown: readonly string[]
  /** What additional columns take of it; null where there are none. */
  readonly extras: SourceExtras | null
  /** Entry of (`source.id`, source) in the source table of page number `page`. */
  entry: number
  page: number
}

/** Values of additional columns that a source gives to its rows. */
export type SourceExtras = {
  /** By field number. */
  readonly values: readonly (readonly [field: number, value: ColumnValue])[]
  /** By field number: digits and times as they are written. */
  readonly raw: readonly string[]
  /** Names of unknown fields inside those on the way. */
  readonly unknown: readonly string[]
}

/** How additional columns read a source. */
type ReadSource = Pick<ExtraReader, 'source' | 'sourceFields'>

/** Numbers of a record: its fields, then what is said of it as a whole. */
export const RECORD_SLOTS = 16
const IS_SOURCE_ID = 13
const UNKNOWN_COUNT = 14
const MAX_UNKNOWN = 8
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
  open(bytes: number): number
  walk(start: number): number
  endOfValue(at: number): number
  meet(source: number): void
  learn(start: number, length: number, idLength: number): number
  idOf(source: number): number
  findTexts(field: number, rows: number): void
  compareTexts(field: number, rows: number): void
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
  | 'BUFFER_BYTES'

/**
 * Finds the fields of credentials in a response's bytes, by WebAssembly, buffer by buffer: a part of the response that
 * stays near the processor. A walk makes records of the items of a buffer, valid until the next walk. By
 * `record * RECORD_SLOTS + field`, `kinds` has the kind of a value, `starts` and `ends` its offsets in `bytes` (texts
 * without their quotes). Lists of texts lie in `texts`, three numbers each (start, end, 1 if it has escapes); for
 * them, `starts` and `ends` say which. Positions in the response are numbers of their own.
 */
export class ItemWalker {
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
  #walker: Exports
  readonly #known: KnownSource[] = []
  #notKept: KnownSource | null = null
  #body: Buffer = Buffer.alloc(0)
  /** Where the buffer begins in the response, and in `bytes`. */
  #start = 0
  #origin = 0
  #bufferBytes = 0
  #hasGrown = false
  /** Position of the item whose source this buffer learned last. */
  #learnedAt = -1
  readonly #extra: ReadSource | null

  constructor(walker: Exports, extra: ReadSource | null) {
    this.#extra = extra
    this.#walker = walker
    this.run = new RecordRun()
    this.#look()
  }

  begin(body: Buffer): void {
    this.#body = body
    this.end = 0
    this.run.rows = 0
    this.#bufferBytes = this.#walker.BUFFER_BYTES.value
    // Memory of WebAssembly never shrinks.
    const walker = this.#hasGrown ? newWalker() : null
    if (walker === null) return
    this.#hasGrown = false
    this.#walker = walker
    this.#known.length = 0
    this.#look()
  }

  /** Whether an item at `at` begins the buffer. */
  isFirst(at: number): boolean {
    return at === this.#start
  }

  /** Takes the next bytes of the response, from `at` on. @returns false when they are no UTF-8, or too many */
  open(at: number, least = 0): boolean {
    const body = this.#body
    this.#bufferBytes = Math.max(this.#bufferBytes, least)
    const length = Math.min(body.length - at, this.#bufferBytes)
    if (length > this.#walker.BUFFER_BYTES.value) this.#hasGrown = true
    this.#origin = this.#walker.open(length)
    this.#look()
    if (this.#origin === 0) return false
    copyBytes(body.subarray(at, at + length), this.bytes, this.#origin)
    this.#start = at
    this.#learnedAt = -1
    this.end = at + length
    if (this.end < body.length) this.end -= cutOff(body, this.end)
    return isUtf8(this.bytes.subarray(this.#origin, this.#origin + this.end - at))
  }

  /** Makes records from position `at` in the response on. @returns how many */
  walk(at: number): number {
    return this.#walker.walk(this.#origin + at - this.#start)
  }

  /** Where the value at `at` ends in the response; -1 when the buffer does not hold it and what follows it. */
  endOfValue(at: number): number {
    const end = this.#walker.endOfValue(this.#origin + at - this.#start)
    return end === 0 ? -1 : end - this.#origin + this.#start
  }

  get status(): number {
    return this.#walker.status.value
  }

  /** Where the walk ended in the response. */
  get position(): number {
    return this.#walker.position.value - this.#origin + this.#start
  }

  /** Where the item of a record begins in the response. */
  itemStart(record: number): number {
    return this.#items[record]! - this.#origin + this.#start
  }

  id(record: number): Int64 {
    const id = this.#ids[record]!
    if (!Number.isNaN(id)) return id
    const { bytes, starts, ends } = this
    const slot = record * RECORD_SLOTS
    return int64(BigInt(bytes.toString('latin1', starts[slot], ends[slot])))
  }

  /** The source of a record that has one. */
  source(record: number): KnownSource {
    const source = this.#sources[record]!
    return source === NOT_KEPT ? this.#notKept! : this.#known[source]!
  }

  /** Whether the record's `source_id` is written as just the `id` of its source. */
  hasIdOfSource(record: number): boolean {
    return this.kinds[record * RECORD_SLOTS + IS_SOURCE_ID] === 1
  }

  unknownCount(record: number): number {
    return this.kinds[record * RECORD_SLOTS + UNKNOWN_COUNT]!
  }

  /** Offsets of an unknown field: start (0) and end (1) of its key, of its value (2, 3). */
  unknownField(record: number, index: number, part: 0 | 1 | 2 | 3): number {
    return this.#unknownFields[4 * (MAX_UNKNOWN * record + index) + part]!
  }

  /**
   * Parses and validates the source before which the walk ended; false when it breaks the schema, or is the second one
   * of an item: of two that are not kept, each would make the walk forget the other, without end.
   */
  learn(): boolean {
    const { bytes, position } = this
    const walker = this.#walker
    if (position === this.#learnedAt) return false
    this.#learnedAt = position
    const start = walker.sourceStart.value
    const end = walker.sourceEnd.value
    // An item with it is parsed as a whole, or the page is.
    if (mayHoldManyValues(end - start)) return false
    const value: unknown = JSON.parse(bytes.toString('utf8', start, end))
    const result = sourceSchema.safeParse(value)
    if (!result.success) return false
    const source = result.data
    const extras = this.#extra === null ? null : this.#extra.source(bytes, start, end)
    if (this.#extra !== null && extras === null) return false
    const unknown = unknownNames(value as object, this.#extra?.sourceFields ?? SOURCE_FIELDS, 'source.')
    this.#keep({ source, unknown, extras, entry: 0, page: -1 }, start, end)
    return true
  }

  #keep(source: KnownSource, start: number, end: number): void {
    const walker = this.#walker
    const id = Buffer.from(source.source.id)
    const number = walker.learn(start, end - start, id.length)
    this.#look()
    if (number === 0) this.#known.length = 0
    if (number >= 0) {
      this.#known[number] = source
      this.bytes.set(id, walker.idOf(number))
    } else this.#notKept = source
    walker.meet(number >= 0 ? number : NOT_KEPT)
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

/** Records that become rows. */
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

  find(field: number): void {
    this.#walker.findTexts(field, this.rows)
  }

  compare(field: number): void {
    this.#walker.compareTexts(field, this.rows)
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

/** Bytes before `end` that begin a character that continues after it. */
function cutOff(bytes: Uint8Array, end: number): number {
  for (let back = 1; back <= 3; back++) {
    const byte = bytes[end - back]!
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return back
  }
  return 0
}

/** Null where there is no WebAssembly with SIMD, or no memory for it. */
export function itemWalker(extra: ReadSource | null): ItemWalker | null {
  const walker = newWalker()
  return walker === null ? null : new ItemWalker(walker, extra)
}

function newWalker(): Exports | null {
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
  return walker
}

function instance(): Exports | null {
  // It is not there in a process without a compiler.
  if (typeof WebAssembly === 'undefined') return null
  try {
    return new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(ITEM_WALKER, 'base64')))
      .exports as Exports
  } catch (error) {
    if (error instanceof WebAssembly.CompileError || error instanceof RangeError) return null
    throw error
  }
}
