import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type ColumnSpec, type ColumnType, type Format, TYPE_NAMES } from '../../core/index.ts'
import { type CsvLine, fieldText, readCsv } from './csv-records.ts'
import { damaged, guardedStream } from './damaged.ts'
import type { InspectedShard, InspectOptions, ShardReader } from './inspector.ts'

/** No shard has nearly as many columns. */
export const MAX_FIELDS = 1000

/** What values look like where they are not free text. */
const PATTERNS: Record<Exclude<ColumnType, 'text'>, RegExp> = {
  int64: /^-?\d{1,19}$/,
  timestamp: /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/,
  boolean: /^(?:true|false)$/,
  list: /^\[.*\]$/s,
}

/**
 * Reads a CSV file line by line and checks every value against the type of its column. The file tells
 * no types: they are those of the columns asked for, by their names.
 */
export async function inspectCsv(
  reader: ShardReader,
  format: Extract<Format, { kind: 'csv' }>,
  { columns: asked, watch, onText }: InspectOptions,
): Promise<InspectedShard> {
  let columns: ColumnSpec[] | null = null
  let checks: LineCheck[] = []
  let rows = 0
  await readCsv(bytesOf(reader, format), MAX_FIELDS, (line, number) => {
    if (columns === null) {
      columns = headerOf(line, asked)
      checks = columns.flatMap((column, i) => {
        const watcher = watch.includes(column.name) ? onText : null
        return lineCheck(column, i, watcher, format.escapeFormulas)
      })
      return
    }
    if (line.count !== columns.length) {
      throw damaged(`Line ${number} has ${line.count} fields instead of ${columns.length}`)
    }
    for (const check of checks) check(line, number)
    rows++
  })
  if (columns === null) throw damaged('It has no header row')
  return { rows, columns: described(columns) }
}

/** The text's bytes. */
export function bytesOf(
  reader: ShardReader,
  { compression }: Extract<Format, { kind: 'csv' }>,
): AsyncIterable<Uint8Array> {
  if (compression === 'none') return reader.stream()
  // What goes wrong comes out where the bytes do, so nothing is left for the callback.
  return guardedStream(
    'It is no whole gzip file',
    pipeline(Readable.from(reader.stream()), createGunzip(), () => {}),
  )
}

function headerOf(line: CsvLine, asked: readonly ColumnSpec[]): ColumnSpec[] {
  return Array.from({ length: line.count }, (_, i) => {
    const name = fieldText(line, i) ?? ''
    const unknown: ColumnSpec = { name, type: 'text', nullable: true, meaning: '' }
    return asked.find((column) => column.name === name) ?? unknown
  })
}

function described(columns: readonly ColumnSpec[]): InspectedShard['columns'] {
  return columns.map(({ name, type, nullable }) => ({ name, type: TYPE_NAMES[type], nullable }))
}

type LineCheck = (line: CsvLine, number: number) => void

/** What there is to do about field i of every line; nothing for a text that nobody watches. */
function lineCheck(
  { name, type, nullable }: ColumnSpec,
  i: number,
  onText: InspectOptions['onText'] | null,
  escapeFormulas: boolean,
): LineCheck[] {
  if (type === 'text' && nullable && onText === null) return []
  const pattern = type === 'text' ? null : PATTERNS[type]
  return [
    (line, number) => {
      if (line.starts[i] === line.ends[i]) {
        if (!nullable) throw damaged(`Column ${name} is null in line ${number}`)
        onText?.(name, null)
        return
      }
      if (pattern === null && onText === null) return
      const text = fieldText(line, i) ?? ''
      if (pattern !== null && !pattern.test(text)) {
        throw damaged(`Column ${name} holds no ${TYPE_NAMES[type]} in line ${number}`)
      }
      onText?.(name, escapeFormulas ? unescaped(text) : text)
    },
  ]
}

/** The text before a quote was put before it to keep a spreadsheet from running it. */
export function unescaped(text: string): string {
  return /^'[=+\-@\t\r]/.test(text) ? text.slice(1) : text
}
