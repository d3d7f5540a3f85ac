import { mayHoldManyValues } from '../../core/index.ts'
import type { ExtraValue } from '../columns/index.ts'
import { fieldName, SOURCE_FIELDS, type Source, sourceSchema, unknownNames } from '../schema/index.ts'

/*
 * A page says the same few hundred `source` objects thousands of times, and they are most of its bytes.
 * So every distinct byte sequence is parsed and validated once, and recognised from then on by comparing
 * bytes.
 *
 * - `arena` holds the known objects' bytes, one behind the other.
 * - `byPrefix` finds them by a hash of their first PREFIX bytes, which does not require to know where the
 *   object in the answer ends: no JSON object is the beginning of another, so where the bytes of a known
 *   object stand, that object stands. Objects with one hash form a short chain through `older`.
 *
 * When the arena is full, everything is forgotten: sources that never repeat cost time, but not memory.
 */
const MAX_BYTES = 1 << 24
const MAX_SOURCES = 1 << 15
const FIRST_BYTES = 1 << 16
/** Beyond the `id` in every order of fields that serializers choose. Smaller objects are not worth knowing. */
const PREFIX = 96
const MAX_CHAIN = 8

/** A validated source and what a row needs of it. */
export type KnownSource = {
  readonly source: Source
  /** `source.id` in UTF-8. */
  readonly id: Uint8Array
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
  readonly values: readonly (readonly [field: number, value: ExtraValue])[]
  /** By field number: digits and times as they are written. */
  readonly raw: readonly string[]
  /** Names of unknown fields inside those on the way. */
  readonly unknown: readonly string[]
}

/** How additional columns read a source at [start, end); null when it breaks the type of one. */
export type ReadSource = {
  readonly fields: ReadonlySet<string>
  readonly read: (bytes: Buffer, start: number, end: number) => SourceExtras | null
}

type Cached = {
  readonly known: KnownSource
  readonly start: number
  readonly length: number
  older: Cached | null
}

export class SourceCache {
  private arena = new DataView(new ArrayBuffer(FIRST_BYTES))
  private used = 0
  private count = 0
  private readonly byPrefix = new Map<number, Cached>()
  private body: DataView = new DataView(new ArrayBuffer(0))
  private bytes: Buffer = Buffer.alloc(0)
  /** Bytes of the object that was found or learned last. */
  length = 0

  /** @param extra null: no additional columns */
  constructor(private readonly extra: ReadSource | null) {}

  begin(bytes: Buffer): void {
    this.bytes = bytes
    this.body = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** The known source whose bytes stand at `at`, or null. */
  find(at: number): KnownSource | null {
    if (at + PREFIX > this.bytes.length) return null
    let cached = this.byPrefix.get(this.hash(at)) ?? null
    for (; cached !== null; cached = cached.older) {
      if (this.isAt(at, cached)) {
        this.length = cached.length
        return cached.known
      }
    }
    return null
  }

  /** Parses the object at [start, end), which must be valid JSON; null when it breaks the schema. */
  learn(start: number, end: number): KnownSource | null {
    // An item with it is parsed as a whole, or the page is.
    if (mayHoldManyValues(end - start)) return null
    const value: unknown = JSON.parse(this.bytes.toString('utf8', start, end))
    const result = sourceSchema.safeParse(value)
    if (!result.success) return null
    const source = result.data
    const extras = this.extra === null ? null : this.extra.read(this.bytes, start, end)
    if (this.extra !== null && extras === null) return null
    const unknown = unknownNames(value as object, this.extra?.fields ?? SOURCE_FIELDS).map((name) =>
      fieldName('source.', name),
    )
    const known = { source, id: Buffer.from(source.id), unknown, extras, entry: 0, page: -1 }
    this.length = end - start
    if (this.length >= PREFIX) this.keep(known, start)
    return known
  }

  private keep(known: KnownSource, at: number): void {
    const { length } = this
    if (length > MAX_BYTES) return
    if (this.used + length > MAX_BYTES || this.count >= MAX_SOURCES) this.forget()
    this.reserve(length)
    new Uint8Array(this.arena.buffer).set(this.bytes.subarray(at, at + length), this.used)
    const hash = this.hash(at)
    const older = this.byPrefix.get(hash) ?? null
    this.byPrefix.set(hash, { known, start: this.used, length, older })
    cutChain(older, MAX_CHAIN - 1)
    this.used += length
    this.count++
  }

  private forget(): void {
    this.byPrefix.clear()
    this.used = 0
    this.count = 0
  }

  private reserve(length: number): void {
    let capacity = this.arena.byteLength
    while (capacity < this.used + length) capacity *= 2
    if (capacity === this.arena.byteLength) return
    const larger = new Uint8Array(capacity)
    larger.set(new Uint8Array(this.arena.buffer, 0, this.used))
    this.arena = new DataView(larger.buffer)
  }

  private hash(at: number): number {
    const { body } = this
    // Two lanes, because the steps of one wait for each other.
    let even = 0
    let odd = 0
    for (let i = at; i < at + PREFIX; i += 8) {
      even = Math.imul(even ^ body.getInt32(i, true), 0x9e3779b1)
      odd = Math.imul(odd ^ body.getInt32(i + 4, true), 0x85ebca77)
      even ^= even >>> 15
      odd ^= odd >>> 13
    }
    return even ^ odd
  }

  /** Eight bytes at a time: a call of Buffer.compare costs more than comparing a usual source does. */
  private isAt(at: number, { start, length }: Cached): boolean {
    const { body, arena } = this
    if (at + length > this.bytes.length) return false
    let i = 0
    for (; i + 8 <= length; i += 8) {
      // As numbers, unequal can still mean equal bits (NaN), but for text equal means equal bits: only the
      // two zeros are equal without being the same, and text has no run of NUL bytes.
      if (body.getFloat64(at + i, true) !== arena.getFloat64(start + i, true)) {
        if (body.getInt32(at + i, true) !== arena.getInt32(start + i, true)) return false
        if (body.getInt32(at + i + 4, true) !== arena.getInt32(start + i + 4, true)) return false
      }
    }
    for (; i < length; i++) if (body.getUint8(at + i) !== arena.getUint8(start + i)) return false
    return true
  }
}

function cutChain(first: Cached | null, length: number): void {
  let last = first
  for (let i = 1; i < length && last !== null; i++) last = last.older
  if (last !== null) last.older = null
}
