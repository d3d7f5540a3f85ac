/**
 * The rows of one page in columns. The log has them as one run of bytes, on which decoded vectors are views.
 * Layout (little-endian): u32 magic, u32 length of the header, the header as JSON padded with spaces to a multiple of
 * 8, then every buffer, each starting at a multiple of 8.
 */
export type RecordBatch = {
  readonly rows: number
  readonly groups: readonly Group[]
  readonly columns: readonly Column[]
}

/** A dictionary that several columns share, because their values repeat together: everything about one source. */
export type Group = {
  readonly size: number
  /** Entry of each row; null: every row is entry 0. */
  readonly indices: Uint32Array | null
}

export type Column = {
  readonly name: string
  /** Index into `groups`: `values` has one value per entry; null: one value per row. */
  readonly group: number | null
  readonly values: Vector
}

/** Values of one column. `valid` holds 1 for a value and 0 for null; it is null if the column has no null. */
export type Vector =
  | IntegerVector
  | { readonly kind: 'boolean'; readonly values: Uint8Array; readonly valid: Uint8Array | null }
  | TextVector
  | {
      readonly kind: 'list'
      readonly offsets: Uint32Array
      readonly items: TextVector
      readonly valid: Uint8Array | null
    }

/** Integers that are exact as doubles: nearly all are. */
export type NumberVector = {
  readonly kind: 'number'
  readonly values: Float64Array
  readonly valid: Uint8Array | null
}

export type Int64Vector = {
  readonly kind: 'int64'
  readonly values: BigInt64Array
  readonly valid: Uint8Array | null
}

export type IntegerVector = NumberVector | Int64Vector

/** Concatenated UTF-8 strings in `bytes`. String i is `[offsets[i], offsets[i + 1])`; a null is empty there. */
export type TextVector = {
  readonly kind: 'text'
  readonly offsets: Uint32Array
  readonly bytes: Uint8Array
  readonly valid: Uint8Array | null
}

const MAGIC = 0x31465053 // "SPF1"

type Header = {
  rows: number
  groups: { size: number; indices: number }[]
  columns: HeaderColumn[]
  /** Byte length of each buffer, in order. */
  buffers: number[]
}
/** Numbers are buffer indices; -1 means none. */
type HeaderColumn = { name: string; group: number; kind: Vector['kind']; parts: number[] }

/** Encodes a record batch as one run of bytes, whose length is a multiple of 8. */
export function encodeRecordBatch(recordBatch: RecordBatch): Uint8Array {
  const buffers: Uint8Array[] = []
  const add = (view: Uint8Array | Uint32Array | Float64Array | BigInt64Array | null): number => {
    if (view === null) return -1
    return buffers.push(new Uint8Array(view.buffer, view.byteOffset, view.byteLength)) - 1
  }
  const addVector = (vector: Vector): number[] => {
    switch (vector.kind) {
      case 'number':
      case 'int64':
      case 'boolean':
        return [add(vector.values), add(vector.valid)]
      case 'text':
        return [add(vector.offsets), add(vector.bytes), add(vector.valid)]
      case 'list':
        return [add(vector.offsets), add(vector.valid), ...addVector(vector.items)]
    }
  }
  const groups = recordBatch.groups.map(({ size, indices }) => ({ size, indices: add(indices) }))
  const columns = recordBatch.columns.map(({ name, group, values }) => ({
    name,
    group: group ?? -1,
    kind: values.kind,
    parts: addVector(values),
  }))
  const header: Header = {
    rows: recordBatch.rows,
    groups,
    columns,
    buffers: buffers.map((b) => b.byteLength),
  }
  return assemble(Buffer.from(JSON.stringify(header)), buffers)
}

/** Views on `bytes`, which must start at a multiple of 8 in its buffer. @throws Error if it is not a record batch */
export function decodeRecordBatch(bytes: Uint8Array): RecordBatch {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.byteLength < 8 || view.getUint32(0, true) !== MAGIC) throw new Error('not a record batch')
  const headerLength = view.getUint32(4, true)
  const header = JSON.parse(
    Buffer.from(bytes.buffer, bytes.byteOffset + 8, headerLength).toString(),
  ) as Header
  let at = bytes.byteOffset + 8 + headerLength
  const starts = header.buffers.map((length) => {
    const start = at
    at += padded(length)
    return start
  })
  const u8 = (index: number): Uint8Array => new Uint8Array(bytes.buffer, starts[index], header.buffers[index])
  const u32 = (index: number): Uint32Array =>
    new Uint32Array(bytes.buffer, starts[index], header.buffers[index]! / 4)
  const f64 = (index: number): Float64Array =>
    new Float64Array(bytes.buffer, starts[index], header.buffers[index]! / 8)
  const i64 = (index: number): BigInt64Array =>
    new BigInt64Array(bytes.buffer, starts[index], header.buffers[index]! / 8)
  const orNull = <T>(index: number, read: (index: number) => T): T | null => (index < 0 ? null : read(index))
  const text = ([offsets, data, valid]: number[]): TextVector => ({
    kind: 'text',
    offsets: u32(offsets!),
    bytes: u8(data!),
    valid: orNull(valid!, u8),
  })
  const vector = ({ kind, parts }: HeaderColumn): Vector => {
    switch (kind) {
      case 'number':
        return { kind, values: f64(parts[0]!), valid: orNull(parts[1]!, u8) }
      case 'int64':
        return { kind, values: i64(parts[0]!), valid: orNull(parts[1]!, u8) }
      case 'boolean':
        return { kind, values: u8(parts[0]!), valid: orNull(parts[1]!, u8) }
      case 'text':
        return text(parts)
      case 'list':
        return { kind, offsets: u32(parts[0]!), valid: orNull(parts[1]!, u8), items: text(parts.slice(2)) }
    }
  }
  return {
    rows: header.rows,
    groups: header.groups.map(({ size, indices }) => ({ size, indices: orNull(indices, u32) })),
    columns: header.columns.map((column) => ({
      name: column.name,
      group: column.group < 0 ? null : column.group,
      values: vector(column),
    })),
  }
}

function assemble(header: Uint8Array, buffers: readonly Uint8Array[]): Uint8Array {
  const headerLength = padded(header.byteLength)
  let length = 8 + headerLength
  for (const buffer of buffers) length += padded(buffer.byteLength)
  const bytes = new Uint8Array(length)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  view.setUint32(0, MAGIC, true)
  view.setUint32(4, headerLength, true)
  bytes.fill(0x20, 8, 8 + headerLength)
  bytes.set(header, 8)
  let at = 8 + headerLength
  for (const buffer of buffers) {
    bytes.set(buffer, at)
    at += padded(buffer.byteLength)
  }
  return bytes
}

function padded(length: number): number {
  return (length + 7) & ~7
}
