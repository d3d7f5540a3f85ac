import { randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** The part of Avro's schemas that table metadata needs. `['null', T]` is an optional value. */
export type AvroSchema =
  | 'int'
  | 'long'
  | 'string'
  | 'bytes'
  | readonly ['null', AvroSchema]
  | { readonly type: 'array'; readonly items: AvroSchema; readonly [attribute: string]: unknown }
  | {
      readonly type: 'record'
      readonly name: string
      readonly fields: readonly { readonly name: string; readonly type: AvroSchema }[]
    }

const MAGIC = Buffer.from('Obj\x01')
const SYNC_BYTES = 16

/**
 * Writes an Avro file of one block.
 * Source: https://avro.apache.org/docs/1.12.0/specification/#object-container-files
 * @param metadata of the file, besides schema and codec
 */
export function writeAvro(
  schema: AvroSchema,
  metadata: Readonly<Record<string, string>>,
  rows: readonly unknown[],
): Uint8Array {
  const file = new Writer()
  const entries = Object.entries({
    ...metadata,
    'avro.schema': JSON.stringify(schema),
    'avro.codec': 'deflate',
  })
  const sync = randomBytes(SYNC_BYTES)
  file.raw(MAGIC)
  file.long(entries.length)
  for (const [key, value] of entries) {
    file.text(key)
    file.text(value)
  }
  file.long(0)
  file.raw(sync)
  if (rows.length > 0) {
    const block = new Writer()
    for (const row of rows) writeValue(block, schema, row)
    const stored = deflateRawSync(block.bytes())
    file.long(rows.length)
    file.long(stored.byteLength)
    file.raw(stored)
    file.raw(sync)
  }
  return file.bytes()
}

export type AvroFile = {
  readonly metadata: Readonly<Record<string, string>>
  readonly rows: readonly unknown[]
}

/** Reads a file that {@link writeAvro} wrote with this schema. @throws RangeError or Error when it is another file */
export function readAvro(schema: AvroSchema, bytes: Uint8Array): AvroFile {
  const file = new Reader(bytes)
  if (!MAGIC.equals(file.raw(MAGIC.length))) throw new Error('It is no Avro file')
  const metadata: Record<string, string> = {}
  for (let left = file.long(); left > 0; left--) {
    const key = file.text()
    metadata[key] = file.text()
  }
  if (file.long() !== 0 || metadata['avro.schema'] !== JSON.stringify(schema)) {
    throw new Error('It has another schema')
  }
  file.raw(SYNC_BYTES)
  const rows: unknown[] = []
  while (!file.isAtEnd) {
    const count = file.long()
    const block = new Reader(inflateRawSync(file.raw(file.long())))
    for (let i = 0; i < count; i++) rows.push(readValue(block, schema))
    file.raw(SYNC_BYTES)
  }
  return { metadata, rows }
}

function writeValue(to: Writer, schema: AvroSchema, value: unknown): void {
  if (schema === 'int' || schema === 'long') to.long(value as number)
  else if (schema === 'string') to.text(value as string)
  else if (schema === 'bytes') to.sized(value as Uint8Array)
  else if (isOptional(schema)) {
    to.long(value === null ? 0 : 1)
    if (value !== null) writeValue(to, schema[1], value)
  } else if (schema.type === 'array') {
    const items = value as readonly unknown[]
    if (items.length > 0) to.long(items.length)
    for (const item of items) writeValue(to, schema.items, item)
    to.long(0)
  } else {
    for (const { name, type } of schema.fields) {
      writeValue(to, type, (value as Readonly<Record<string, unknown>>)[name])
    }
  }
}

function readValue(from: Reader, schema: AvroSchema): unknown {
  if (schema === 'int' || schema === 'long') return from.long()
  if (schema === 'string') return from.text()
  if (schema === 'bytes') return from.sized()
  if (isOptional(schema)) return from.long() === 0 ? null : readValue(from, schema[1])
  if (schema.type === 'array') {
    const items: unknown[] = []
    for (let count = from.long(); count > 0; count = from.long()) {
      for (let i = 0; i < count; i++) items.push(readValue(from, schema.items))
    }
    return items
  }
  // Many small ones: `Object.fromEntries` would take three times as long.
  const record: Record<string, unknown> = {}
  for (const { name, type } of schema.fields) record[name] = readValue(from, type)
  return record
}

function isOptional(schema: AvroSchema): schema is readonly ['null', AvroSchema] {
  return Array.isArray(schema)
}

class Writer {
  #bytes = Buffer.allocUnsafe(1 << 16)
  #length = 0

  /** A number of 0 or more: sizes, ids and counts are never negative. */
  long(value: number): void {
    // Zigzag: the lowest bit is the sign.
    let rest = value * 2
    if (!Number.isSafeInteger(rest) || rest < 0) throw new RangeError(`not a count: ${value}`)
    let end = this.#extend(10)
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes[end++] = (rest % 128) | 128
    this.#bytes[end++] = rest
    this.#length = end
  }

  text(value: string): void {
    this.sized(Buffer.from(value))
  }

  sized(value: Uint8Array): void {
    this.long(value.byteLength)
    this.raw(value)
  }

  raw(value: Uint8Array): void {
    const at = this.#extend(value.byteLength)
    // Only now: it may be a larger buffer.
    this.#bytes.set(value, at)
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  #extend(count: number): number {
    const at = this.#length
    if (at + count > this.#bytes.byteLength) {
      const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.byteLength, at + count))
      larger.set(this.bytes())
      this.#bytes = larger
    }
    this.#length = at + count
    return at
  }
}

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.byteLength
  }

  long(): number {
    let value = 0
    let byte = 128
    for (let scale = 1; byte >= 128; scale *= 128) {
      byte = this.#bytes.readUInt8(this.#at++)
      value += (byte % 128) * scale
    }
    return value / 2
  }

  text(): string {
    return this.sized().toString()
  }

  sized(): Buffer {
    return this.raw(this.long())
  }

  raw(length: number): Buffer {
    const end = this.#at + length
    if (end > this.#bytes.byteLength) throw new RangeError('It ends early')
    const found = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return found
  }
}
