import { isUtf8 } from 'node:buffer'
import { damaged } from './damaged.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

/** Longer lines are refused: a line is held in memory. */
const MAX_LINE_BYTES = 1 << 28

/** The fields of one line: field i is `[starts[i], ends[i])` of `bytes`, its quotes included. */
export type CsvLine = {
  readonly bytes: Buffer
  readonly count: number
  readonly starts: Uint32Array
  readonly ends: Uint32Array
}

/**
 * Splits CSV into lines and fields, strictly by RFC 4180 with `\n`: a quote only around a whole field,
 * every line whole. Calls `onLine` with an object that the next line overwrites. csv-parse takes twenty
 * times as long once it has to tell an empty text from a null.
 * @param fields how many fields a line has at most
 * @throws ExportError `damaged` with the number of the line
 */
export async function readCsv(
  chunks: AsyncIterable<Uint8Array>,
  fields: number,
  onLine: (line: CsvLine, number: number) => void,
): Promise<void> {
  const starts = new Uint32Array(fields)
  const ends = new Uint32Array(fields)
  let number = 0
  let rest: Buffer = Buffer.alloc(0)
  let waiting: Uint8Array[] = []
  let waitingBytes = 0
  for await (const chunk of chunks) {
    waiting.push(chunk)
    waitingBytes += chunk.length
    // A long line comes in many chunks: it is parsed again only when it has doubled.
    if (waitingBytes < rest.length) continue
    const bytes = Buffer.concat([rest, ...waiting])
    waiting = []
    waitingBytes = 0
    rest = bytes.subarray(takeLines(bytes))
    if (rest.length > MAX_LINE_BYTES) throw damaged(`Line ${number + 1} does not end`)
  }
  const bytes = Buffer.concat([rest, ...waiting])
  if (takeLines(bytes) < bytes.length) throw damaged(`Line ${number + 1} does not end`)

  /** Reads the whole lines in `bytes`; returns where they end. */
  function takeLines(bytes: Buffer): number {
    let at = 0
    while (true) {
      const end = takeLine(bytes, at)
      if (end < 0) return at
      at = end
    }
  }

  /** Reads the line at `from`; returns where it ends, or -1 when `bytes` ends before. */
  function takeLine(bytes: Buffer, from: number): number {
    let at = from
    for (let count = 0; ; count++) {
      const end = fieldEnd(bytes, at, number + 1)
      if (end < 0) return -1
      if (count === fields) throw damaged(`Line ${number + 1} has more than ${fields} fields`)
      starts[count] = at
      ends[count] = end
      at = end + 1
      if (bytes[end] === LINE_FEED) {
        number++
        if (!isUtf8(bytes.subarray(from, end))) throw damaged(`Line ${number} is no UTF-8`)
        onLine({ bytes, count: count + 1, starts, ends }, number)
        return at
      }
    }
  }
}

/** Where the field at `from` ends: the position of the comma or line feed behind it; -1 when it is not there yet. */
function fieldEnd(bytes: Buffer, from: number, number: number): number {
  const { length } = bytes
  let at = from
  if (bytes[at] !== QUOTE) {
    for (; at < length; at++) {
      const byte = bytes[at]!
      if (byte === COMMA || byte === LINE_FEED) return at
      if (byte === QUOTE || byte === CARRIAGE_RETURN)
        throw damaged(`Line ${number} has a field without its quotes`)
    }
    return -1
  }
  for (at++; at < length; at++) {
    if (bytes[at] !== QUOTE) continue
    at++
    if (at === length) return -1
    if (bytes[at] === QUOTE) continue
    if (bytes[at] === COMMA || bytes[at] === LINE_FEED) return at
    throw damaged(`Line ${number} goes on behind a closing quote`)
  }
  return -1
}

/** The text of field i, or null where there is nothing at all. */
export function fieldText({ bytes, starts, ends }: CsvLine, i: number): string | null {
  const start = starts[i]!
  const end = ends[i]!
  if (start === end) return null
  if (bytes[start] !== QUOTE) return bytes.toString('utf8', start, end)
  return bytes.toString('utf8', start + 1, end - 1).replaceAll('""', '"')
}
