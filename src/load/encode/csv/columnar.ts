import type { CsvFormat } from '../../../core/index.ts'
import type { ColumnSpec, Group, RecordBatch, TextVector } from '../../../rows/index.ts'
import { ByteBuffer } from '../byte-buffer.ts'
import type { EncodeSettings, ShardEncoder } from '../encoder.ts'
import { integerColumn, type RecordBatchColumn, recordBatchColumn } from '../record-batch-column.ts'
import { csvShard } from './csv-shard.ts'
import {
  COMMA,
  LINE_FEED,
  quoteField,
  REPLACED_NUL,
  TimestampField,
  writeInteger,
  writeTextField,
} from './fields.ts'

const NULL = Buffer.from('null')

/** How JSON.stringify writes each byte of a string; undefined: unchanged. A NUL is replaced, as in other strings. */
const JSON_ESCAPES: readonly (Buffer | undefined)[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x80) return undefined
  if (byte === 0) return REPLACED_NUL
  const json = JSON.stringify(String.fromCharCode(byte)).slice(1, -1)
  return json.length === 1 ? undefined : Buffer.from(json)
})

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')

/** CSV straight from columns. The bytes are the same as those of the csv-stringify engine. */
export function csvColumnar(settings: EncodeSettings, format: CsvFormat): ShardEncoder {
  const out = new ByteBuffer(1 << 20)
  return csvShard(settings, format, (recordBatches) => {
    out.length = 0
    for (const recordBatch of recordBatches)
      writeRecordBatch(out, recordBatch, settings.columns, format.escapeFormulas)
    return out.view()
  })
}

function writeRecordBatch(
  out: ByteBuffer,
  recordBatch: RecordBatch,
  columns: readonly ColumnSpec[],
  escapeFormulas: boolean,
): void {
  const writers = segments(recordBatch, columns, escapeFormulas).map(rowWriter)
  for (let row = 0; row < recordBatch.rows; row++) {
    for (const write of writers) write(out, row)
    // Replaces the last comma.
    out.bytes[out.length - 1] = LINE_FEED
  }
}

/** Writes the field of one row, or of one entry of a group, followed by a comma. */
type FieldWriter = (out: ByteBuffer, index: number) => void

/** Adjacent columns of one group. Their bytes are made once per entry and copied into each row. */
type Segment = { group: Group | null; readonly writers: FieldWriter[] }

function segments(
  recordBatch: RecordBatch,
  columns: readonly ColumnSpec[],
  escapeFormulas: boolean,
): Segment[] {
  const result: Segment[] = []
  for (const column of columns) {
    const { group, write } = field(recordBatch, column, escapeFormulas)
    const constant = group !== null && group.indices === null
    const writer: FieldWriter = constant ? (out) => write(out, 0) : write
    const last = result.at(-1)
    if (last === undefined || last.group === null || group === null) result.push({ group, writers: [writer] })
    else if (group === last.group || constant) last.writers.push(writer)
    else if (last.group.indices === null) {
      last.group = group
      last.writers.push(writer)
    } else result.push({ group, writers: [writer] })
  }
  return result
}

function rowWriter({ group, writers }: Segment): FieldWriter {
  if (group === null) return writers[0]!
  const texts = new ByteBuffer()
  const ends = [0]
  for (let entry = 0; entry < group.size; entry++) {
    for (const write of writers) write(texts, entry)
    ends.push(texts.length)
  }
  const bytes = texts.view()
  const entries = Array.from({ length: group.size }, (_, entry) =>
    bytes.subarray(ends[entry], ends[entry + 1]),
  )
  const { indices } = group
  return (out, row) => out.append(entries[indices === null ? 0 : indices[row]!]!)
}

function field(
  recordBatch: RecordBatch,
  { name, type }: ColumnSpec,
  escapeFormulas: boolean,
): { group: Group | null; write: FieldWriter } {
  switch (type) {
    case 'int64': {
      const column = integerColumn(recordBatch, name)
      const { values } = column.values
      return nullable(column, (out, index) => writeInteger(out, values[index]!))
    }
    case 'timestamp': {
      const column = integerColumn(recordBatch, name)
      const { values } = column.values
      const timestamp = new TimestampField()
      return nullable(column, (out, index) => timestamp.write(out, values[index]!))
    }
    case 'boolean': {
      const column = recordBatchColumn(recordBatch, name, 'boolean')
      const { values } = column.values
      return nullable(column, (out, index) => out.append(values[index] === 1 ? TRUE : FALSE))
    }
    case 'text': {
      const column = recordBatchColumn(recordBatch, name, 'text')
      const { bytes, offsets } = column.values
      return nullable(column, (out, index) =>
        writeTextField(out, bytes, offsets[index]!, offsets[index + 1]!, escapeFormulas),
      )
    }
    case 'list': {
      const column = recordBatchColumn(recordBatch, name, 'list')
      const { items, offsets } = column.values
      return nullable(column, (out, index) =>
        writeListField(out, items, offsets[index]!, offsets[index + 1]!),
      )
    }
  }
}

/** A null is an empty field without quotes. */
function nullable(
  { group, values: { valid } }: RecordBatchColumn,
  write: FieldWriter,
): { group: Group | null; write: FieldWriter } {
  return {
    group,
    write: (out, index) => {
      if (valid === null || valid[index] === 1) write(out, index)
      out.reserve(1)
      out.bytes[out.length++] = COMMA
    },
  }
}

/** Appends the items `[from, to)` as a JSON array in one CSV field. The JSON is the same as that of JSON.stringify. */
function writeListField(out: ByteBuffer, items: TextVector, from: number, to: number): void {
  const { offsets, bytes, valid } = items
  // A byte takes at most six (`\u00ff`), and quotes are doubled afterwards.
  out.reserve((offsets[to]! - offsets[from]!) * 7 + (to - from) * 10 + 4)
  const target = out.bytes
  const start = out.length
  let at = start
  target[at++] = 0x5b
  for (let item = from; item < to; item++) {
    if (item > from) target[at++] = 0x2c
    if (valid !== null && valid[item] === 0) {
      target.set(NULL, at)
      at += NULL.length
      continue
    }
    target[at++] = 0x22
    for (let i = offsets[item]!; i < offsets[item + 1]!; i++) {
      const byte = bytes[i]!
      const escaped = JSON_ESCAPES[byte]
      if (escaped === undefined) target[at++] = byte
      else {
        target.set(escaped, at)
        at += escaped.length
      }
    }
    target[at++] = 0x22
  }
  target[at++] = 0x5d
  // `[]` and `[null]` contain no quote and no comma, so they need no quotes.
  const plain = to === from || (to === from + 1 && valid !== null && valid[from] === 0)
  out.length = plain ? at : quoteField(target, start, at)
}
