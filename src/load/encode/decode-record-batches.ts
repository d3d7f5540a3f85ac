import { getOrInsert } from '../../core/index.ts'
import {
  type Column,
  decodeRecordBatch,
  type Group,
  type RecordBatch,
  type TextVector,
  type Vector,
} from '../../rows/index.ts'
import { takeRows } from '../take-rows.ts'
import { totalRows, type VectorOf } from './record-batch-column.ts'

/** Record batches of fewer bytes are joined. */
const SHORT_BYTES = 1 << 16
/** So many are joined at once: the views on one take about 10 kB. */
const MAX_JOINED = 256
/** So many bytes, too: what is read is garbage soon, which V8 frees late when it has survived for a while. */
const JOINED_BYTES = 1 << 20

/** Short ones are joined with their neighbours: views on 20,000 pages of three rows would take 200 MB. */
export async function* decodeRecordBatches(
  encoded: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<RecordBatch> {
  let short: RecordBatch[] = []
  let shortBytes = 0
  for await (const bytes of encoded) {
    const batch = decodeRecordBatch(bytes)
    const isShort = bytes.byteLength < SHORT_BYTES
    if (
      short.length > 0 &&
      !(isShort && short.length < MAX_JOINED && shortBytes < JOINED_BYTES && canJoin(short.at(-1)!, batch))
    ) {
      yield joinRecordBatches(short)
      short = []
      shortBytes = 0
    }
    if (isShort) {
      short.push(batch)
      shortBytes += bytes.byteLength
    } else yield batch
  }
  if (short.length > 0) yield joinRecordBatches(short)
}

/** Whether both have the same columns with the same kinds of values. Some pages have 64-bit integers. */
function canJoin(one: RecordBatch, other: RecordBatch): boolean {
  return (
    one.groups.length === other.groups.length &&
    one.columns.length === other.columns.length &&
    one.columns.every(({ name, group, values }, i) => {
      const column = other.columns[i]!
      return name === column.name && group === column.group && values.kind === column.values.kind
    })
  )
}

/** Joins record batches for which {@link canJoin} is true. */
function joinRecordBatches(recordBatches: readonly RecordBatch[]): RecordBatch {
  const first = recordBatches[0]!
  if (recordBatches.length === 1) return first
  const columns = first.columns.map(({ name, group }, i): Column => {
    const vectors = recordBatches.map(({ columns }) => columns[i]!.values)
    return { name, group, values: joinVectors(vectors) }
  })
  const rows = totalRows(recordBatches)
  const groups = first.groups.map((_, i) => joinGroups(recordBatches, i, columns))
  return takeRows({ rows, groups, columns }, { from: 0, to: rows })
}

/** Rows with equal entries point to the first of these. */
function joinGroups(recordBatches: readonly RecordBatch[], group: number, columns: readonly Column[]): Group {
  const joined = new Uint32Array(totalRows(recordBatches))
  const size = recordBatches.reduce((sum, { groups }) => sum + groups[group]!.size, 0)
  const first = firstEqual(
    columns.flatMap((column) => (column.group === group ? [column.values] : [])),
    size,
  )
  let row = 0
  let start = 0
  for (const { rows, groups } of recordBatches) {
    const { indices, size: entries } = groups[group]!
    for (let i = 0; i < rows; i++) joined[row++] = first[start + (indices === null ? 0 : indices[i]!)]!
    start += entries
  }
  return { size, indices: joined }
}

function firstEqual(vectors: readonly Vector[], size: number): Uint32Array {
  const first = new Uint32Array(size)
  const entries = new Map<string, number>()
  for (let entry = 0; entry < size; entry++) {
    let key = ''
    for (const vector of vectors) key += keyAt(vector, entry)
    first[entry] = getOrInsert(entries, key, () => entry)
  }
  return first
}

/** The same for the same values only, also among others. */
function keyAt(vector: Vector, at: number): string {
  if (vector.valid !== null && vector.valid[at] === 0) return '-,'
  if (vector.kind !== 'text' && vector.kind !== 'list') return `${vector.values[at]},`
  const [from, to] = [vector.offsets[at]!, vector.offsets[at + 1]!]
  if (vector.kind === 'text')
    return `${to - from}:${Buffer.prototype.latin1Slice.call(vector.bytes, from, to)}`
  let key = `${to - from}:`
  for (let item = from; item < to; item++) key += keyAt(vector.items, item)
  return key
}

function joinVectors(vectors: readonly Vector[]): Vector {
  const { kind } = vectors[0]!
  if (kind === 'text') return joinTexts(vectors as readonly TextVector[])
  if (kind !== 'list') return joinValues(vectors as readonly Exclude<Vector, TextVector | VectorOf<'list'>>[])
  const lists = vectors as readonly VectorOf<'list'>[]
  return {
    kind,
    offsets: joinOffsets(lists.map(({ offsets }) => offsets)),
    items: joinTexts(lists.map(({ items }) => items)),
    valid: joinValid(lists.map(({ valid, offsets }) => ({ valid, size: offsets.length - 1 }))),
  }
}

function joinValues<V extends VectorOf<'number' | 'int64' | 'boolean'>>(vectors: readonly V[]): V {
  return {
    ...vectors[0]!,
    values: joinArrays(vectors.map(({ values }) => values)),
    valid: joinValid(vectors.map(({ valid, values }) => ({ valid, size: values.length }))),
  }
}

function joinTexts(texts: readonly TextVector[]): TextVector {
  return {
    kind: 'text',
    offsets: joinOffsets(texts.map(({ offsets }) => offsets)),
    bytes: joinArrays(texts.map(({ bytes, offsets }) => bytes.subarray(offsets[0], offsets.at(-1)))),
    valid: joinValid(texts.map(({ valid, offsets }) => ({ valid, size: offsets.length - 1 }))),
  }
}

function joinOffsets(parts: readonly Uint32Array[]): Uint32Array {
  const joined = new Uint32Array(parts.reduce((sum, { length }) => sum + length - 1, 1))
  let at = 0
  for (const offsets of parts) {
    const shift = joined[at]! - offsets[0]!
    for (let i = 1; i < offsets.length; i++) joined[++at] = offsets[i]! + shift
  }
  return joined
}

function joinValid(parts: readonly { valid: Uint8Array | null; size: number }[]): Uint8Array | null {
  if (parts.every(({ valid }) => valid === null)) return null
  return joinArrays(parts.map(({ valid, size }) => valid ?? new Uint8Array(size).fill(1)))
}

function joinArrays<T extends Uint8Array | Float64Array | BigInt64Array>(parts: readonly T[]): T {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const joined = new (parts[0]!.constructor as new (length: number) => T)(length)
  let at = 0
  for (const part of parts) {
    ;(joined as Uint8Array).set(part as Uint8Array, at)
    at += part.length
  }
  return joined
}
