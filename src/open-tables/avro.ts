import { randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import avro, { type Schema, type Type } from 'avsc'

// Source: https://avro.apache.org/docs/1.12.0/specification/#object-container-files
// The streams of avsc would do the same asynchronously.
const MAGIC = Buffer.from('Obj\x01')
const SYNC: Schema = { type: 'fixed', name: 'Sync', size: 16 }
const HEADER = typeOf({
  type: 'record',
  name: 'Header',
  fields: [
    { name: 'magic', type: { type: 'fixed', name: 'Magic', size: MAGIC.byteLength } },
    { name: 'meta', type: { type: 'map', values: 'bytes' } },
    { name: 'sync', type: SYNC },
  ],
})
const BLOCK = typeOf({
  type: 'record',
  name: 'Block',
  fields: [
    { name: 'count', type: 'long' },
    { name: 'data', type: 'bytes' },
    { name: 'sync', type: SYNC },
  ],
})

type Header = { readonly magic: Buffer; readonly meta: Readonly<Record<string, Buffer>> }
type Block = { readonly count: number; readonly data: Buffer }

/** A kind of Avro file: its schema as it is written, and compiled. */
type AvroFormat = { readonly schema: string; readonly type: Type }

/** @param schema attributes that Avro does not know are kept */
export function avroFormat(schema: Schema): AvroFormat {
  return { schema: JSON.stringify(schema), type: typeOf(schema) }
}

function typeOf(schema: Schema): Type {
  // Values of optional fields are as they are.
  return avro.Type.forSchema(schema, { wrapUnions: 'never' })
}

/** Writes one block. @param metadata of the file, besides schema and codec */
export function writeAvro(
  { schema, type }: AvroFormat,
  metadata: Readonly<Record<string, string>>,
  rows: readonly unknown[],
): Uint8Array {
  const entries = Object.entries({ ...metadata, 'avro.schema': schema, 'avro.codec': 'deflate' })
  const meta = Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value)]))
  const sync = randomBytes(16)
  const header = HEADER.toBuffer({ magic: MAGIC, meta, sync })
  if (rows.length === 0) return header
  const data = deflateRawSync(Buffer.concat(rows.map((row) => type.toBuffer(row))))
  return Buffer.concat([header, BLOCK.toBuffer({ count: rows.length, data, sync })])
}

/** Reads a file that {@link writeAvro} wrote with this schema. @throws Error when it is another file */
export function readAvro({ schema, type }: AvroFormat, bytes: Uint8Array) {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const head = decode<Header>(HEADER, file, 0)
  if (!MAGIC.equals(head.value.magic)) throw new Error('It is no Avro file')
  const entries = Object.entries(head.value.meta).map(([key, value]) => [key, value.toString()])
  const metadata: Record<string, string> = Object.fromEntries(entries)
  if (metadata['avro.schema'] !== schema) throw new Error('It has another schema')
  const rows: unknown[] = []
  for (let at = head.end; at < file.byteLength; ) {
    const block = decode<Block>(BLOCK, file, at)
    at = block.end
    const data = inflateRawSync(block.value.data)
    for (let i = 0, offset = 0; i < block.value.count; i++) {
      const row = decode<unknown>(type, data, offset)
      rows.push(row.value)
      offset = row.end
    }
  }
  return { metadata, rows }
}

function decode<T>(type: Type, bytes: Buffer, at: number): { readonly value: T; readonly end: number } {
  const { value, offset } = type.decode(bytes, at)
  // What ends early has no offset.
  if (offset === undefined || offset < 0) throw new Error('It ends early')
  return { value: value as T, end: offset }
}
