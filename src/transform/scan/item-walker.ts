import { readFileSync } from 'node:fs'
import { type Int64, int64 } from '../../core/index.ts'
import { type KnownSource, readSource } from '../schema.ts'
import { FIELDS, KIND, SOURCE } from './item-fields.ts'

/** Numbers of a record: its fields, then what is said of it as a whole. */
export const RECORD_SLOTS = 16
const IS_SOURCE_ID = 13
const UNKNOWN = 14
const IS_LINE = 15
const KEY_BYTES = 64
/** Stands for the number of a source that is not kept. */
const NOT_KEPT = -2
/** 18 MB of them stand before the response; most of these are never touched. */
const MAX_KEPT_BYTES = 32 << 20

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
  | 'RESPONSE'

/**
 * A walk makes records of items of the response, valid until the next walk. By `record * RECORD_SLOTS + field`, `kinds`
 * has the kind of a value, `starts` and `ends` its offsets in `bytes` (texts without their quotes). For lists they say
 * which of `texts`, three numbers each (start, end, 1 if it has escapes).
 */
export class ItemWalker {
  /** They end with the response. */
  bytes!: Buffer
  kinds!: Uint8Array
  starts!: Uint32Array
  ends!: Uint32Array
  texts!: Uint32Array
  run!: FieldRun
  /** Microseconds since the epoch, by record. */
  times!: Float64Array
  #ids!: Float64Array
  #sources!: Int32Array
  #items!: Uint32Array
  #unknownFields!: Uint32Array
  readonly #walker: Exports
  readonly #known: KnownSource[] = []
  #notKept: KnownSource | null = null
  /** Position of the item whose source was learned last. */
  #learnedAt = -1

  constructor(walker: Exports) {
    this.#walker = walker
  }

  /** Takes a response. @returns where it begins in `bytes`; null: there is no memory for it */
  open(body: Buffer): number | null {
    const walker = this.#walker
    const start = walker.RESPONSE.value
    if (walker.open(body.length) === 0) return null
    // Memory that has grown is another buffer.
    const { buffer } = walker.memory
    const view = (region: Region): [ArrayBuffer, number] => [buffer, walker[region].value]
    this.bytes = Buffer.from(buffer, 0, start + body.length)
    this.bytes.set(body, start)
    this.kinds = new Uint8Array(...view('KINDS'))
    this.starts = new Uint32Array(...view('STARTS'))
    this.ends = new Uint32Array(...view('ENDS'))
    this.texts = new Uint32Array(...view('TEXTS'))
    this.times = new Float64Array(...view('TIMES'))
    this.#ids = new Float64Array(...view('IDS'))
    this.#sources = new Int32Array(...view('SOURCES'))
    this.#items = new Uint32Array(...view('ITEMS'))
    this.#unknownFields = new Uint32Array(...view('UNKNOWN_FIELDS'))
    this.run = new FieldRun(walker, this.bytes)
    this.#learnedAt = -1
    return start
  }

  /** Whether it keeps more memory than usual responses need: it cannot give any back. */
  get isLarge(): boolean {
    return this.#walker.memory.buffer.byteLength > MAX_KEPT_BYTES
  }

  /** Makes records from `at` on. @returns how many */
  walk(at: number): number {
    return this.#walker.walk(at)
  }

  get status(): number {
    return this.#walker.status.value
  }

  /** Where the walk ended. */
  get position(): number {
    return this.#walker.position.value
  }

  itemStart(record: number): number {
    return this.#items[record]!
  }

  id(record: number): Int64 {
    const id = this.#ids[record]!
    if (!Number.isNaN(id)) return id
    const { bytes, starts, ends } = this
    const slot = record * RECORD_SLOTS
    return int64(BigInt(bytes.toString('latin1', starts[slot], ends[slot])))
  }

  /** null: it has none. */
  source(record: number): KnownSource | null {
    if (this.kinds[record * RECORD_SLOTS + SOURCE] !== KIND.source) return null
    const source = this.#sources[record]!
    return source === NOT_KEPT ? this.#notKept : this.#known[source]!
  }

  /** The text of a field; null: it has none. */
  text(record: number, field: number): string | null {
    const slot = record * RECORD_SLOTS + field
    const kind = this.kinds[slot]
    if (kind !== KIND.text && kind !== KIND.escapedText) return null
    return textIn(this.bytes, this.starts[slot]!, this.ends[slot]!, kind === KIND.escapedText)
  }

  /** Whether the record's `source_id` is written as just the `id` of its source. */
  hasIdOfSource(record: number): boolean {
    return this.kinds[record * RECORD_SLOTS + IS_SOURCE_ID] === 1
  }

  /** Whether the identity of the record may be a line of a list: it has a `:`, `;`, `|` or an escape. */
  isLine(record: number): boolean {
    return this.kinds[record * RECORD_SLOTS + IS_LINE] === 1
  }

  /** Of its unknown fields, as numbers for {@link unknownName}: the first, and the one after the last. */
  firstUnknown(record: number): number {
    return this.starts[record * RECORD_SLOTS + UNKNOWN]!
  }

  endUnknown(record: number): number {
    return this.ends[record * RECORD_SLOTS + UNKNOWN]!
  }

  unknownName(field: number): string {
    return this.bytes.toString('utf8', this.#unknownFields[2 * field], this.#unknownFields[2 * field + 1])
  }

  /** False also for the second source of an item: two that are not kept would displace each other without end. */
  learn(): boolean {
    const { position } = this
    const walker = this.#walker
    if (position === this.#learnedAt) return false
    this.#learnedAt = position
    const start = walker.sourceStart.value
    const end = walker.sourceEnd.value
    const source = readSource(this.bytes, start, end)
    if (source === null) return false
    const id = Buffer.from(source.id)
    const number = walker.learn(start, end - start, id.length)
    if (number === 0) this.#known.length = 0
    if (number >= 0) {
      this.#known[number] = source
      this.bytes.set(id, walker.idOf(number))
    } else this.#notKept = source
    walker.meet(number >= 0 ? number : NOT_KEPT)
    return true
  }
}

/** The rows of a walk, and the texts of one field in them: of the field that was gathered last. */
export class FieldRun {
  rows = 0
  /** The record of each row. */
  readonly kept: Uint16Array
  /** By row: its {@link STATE}, and the offsets in `bytes` of the JSON of its text, without quotes. */
  readonly states: Uint8Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly bytes: Buffer
  /** The texts themselves, end to end, and by row where they end. */
  readonly texts: Uint8Array
  readonly offsets: Uint32Array
  readonly #walker: Exports

  constructor(walker: Exports, bytes: Buffer) {
    const view = (region: Region): [ArrayBuffer, number] => [walker.memory.buffer, walker[region].value]
    this.kept = new Uint16Array(...view('KEPT'))
    this.states = new Uint8Array(...view('RUN_STATES'))
    this.starts = new Uint32Array(...view('RUN_STARTS'))
    this.ends = new Uint32Array(...view('RUN_ENDS'))
    this.texts = new Uint8Array(...view('RUN_TEXTS'))
    this.offsets = new Uint32Array(...view('RUN_OFFSETS'))
    this.bytes = bytes
    this.#walker = walker
  }

  keep(record: number): void {
    this.kept[this.rows++] = record
  }

  /** Gathers a field. @returns how many rows have none, or -1 when not all texts are end to end */
  gather(field: number): number {
    return this.#walker.gatherTexts(field, this.rows)
  }
}

/** The text of a JSON string at [start, end), without its quotes. */
export function textIn(bytes: Buffer, start: number, end: number, hasEscapes: boolean): string {
  return hasEscapes
    ? (JSON.parse(bytes.toString('utf8', start - 1, end + 1)) as string)
    : bytes.toString('utf8', start, end)
}

/** Null where there is no WebAssembly with SIMD, or no memory for it. */
export function itemWalker(): ItemWalker | null {
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
  return new ItemWalker(walker)
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
