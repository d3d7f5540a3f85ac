import { crc32 } from 'node:zlib'
import { ExportError, type Store, serial } from '../../core/index.ts'

/** A line of the journal is committed when `append` resolves. */
type Journal = {
  readonly size: number
  append(lines: readonly object[]): Promise<void>
  close(): Promise<void>
}

/** Offset after the last valid line of a journal, and the checksum that the next line continues. */
export type JournalEnd = { readonly size: number; readonly checksum: number }

export const JOURNAL_START: JournalEnd = { size: 0, checksum: 0 }

/**
 * Opens the journal for appending after its valid lines. Appends that arrive during an fsync are written together, and
 * chains share the next fsync (group commit). A line is written only after all earlier lines are fsynced. Every line
 * has the offset up to which the file was fsynced; `readJournal` needs it.
 */
export async function openJournal(store: Store, path: string, end: JournalEnd): Promise<Journal> {
  const log = await store.openLog(path, end.size)
  // Lines of a killed process may be in the cache of the system, but not on the disk yet.
  if (end.size > 0) await log.fsync()
  const encode = lineWriter(end.checksum)
  let waiting: { readonly bytes: Uint8Array[]; readonly done: Promise<void> } | null = null
  // After a failed write the end of the file is unknown, so all later writes must fail as well.
  const oneAtATime = serial('stop')
  /** Offset of the first waiting line. All bytes before it are fsynced when that line is written. */
  let fsynced = end.size
  let written = end.size

  return {
    get size() {
      return log.size
    },
    append(lines) {
      if (waiting === null) {
        fsynced = written
        const bytes: Uint8Array[] = []
        const done = oneAtATime(async () => {
          waiting = null
          await log.append([Buffer.concat(bytes)])
          await log.fsync()
        })
        waiting = { bytes, done }
      }
      for (const line of lines) {
        const bytes = encode(line, fsynced)
        written += bytes.byteLength
        waiting.bytes.push(bytes)
      }
      return waiting.done
    },
    async close() {
      await oneAtATime(async () => {}).catch(() => {})
      await log.close()
    },
  }
}

/** Fsyncs a journal that a killed process may have left in the cache of the system. It changes nothing. */
export async function fsyncJournal(store: Store, path: string): Promise<void> {
  const log = await store.openLog(path, (await store.size(path)) ?? 0)
  try {
    await log.fsync()
  } finally {
    await log.close()
  }
}

/**
 * Reads a journal line by line, and calls `visit` with each parsed line. After a power failure the file may be any
 * mixture of old, new and empty blocks, so the journal ends at the first invalid line. That line and later ones are not
 * committed, unless a later line shows that the invalid line was fsynced.
 * @returns the end of the last valid line; null: the file does not exist
 * @throws ExportError `damaged` if an invalid line was fsynced
 */
export async function readJournal(
  store: Store,
  path: string,
  visit: (line: unknown, number: number) => void,
): Promise<JournalEnd | null> {
  if ((await store.size(path)) === null) return null
  let end = JOURNAL_START
  let number = 0
  let invalid: { readonly number: number; readonly how: string } | null = null
  const take = (bytes: Buffer): void => {
    number++
    const line = checkedLine(bytes)
    const checksum = line === null ? null : crc32(line.body, end.checksum)
    if (invalid === null && line !== null && line.chained === checksum) {
      visit(JSON.parse(`${line.text}}`), number)
      end = { size: end.size + bytes.length + 1, checksum }
      return
    }
    const how = line === null ? 'does not match its checksum' : 'does not follow from the one before it'
    invalid ??= { number, how }
    if (line !== null && line.flushed > end.size) throw damaged(path, invalid.number, invalid.how)
  }
  let begun: Buffer[] = []
  for await (const chunk of store.stream(path)) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    let start = 0
    for (let stop = bytes.indexOf(NEWLINE); stop >= 0; stop = bytes.indexOf(NEWLINE, start)) {
      const line = bytes.subarray(start, stop)
      take(begun.length === 0 ? line : Buffer.concat([...begun, line]))
      begun = []
      start = stop + 1
    }
    if (start < bytes.length) begun.push(Buffer.from(bytes.subarray(start)))
  }
  return end
}

/** The first line alone, without the rest of the journal; null: missing or invalid. */
export async function readFirstLine(store: Store, path: string): Promise<unknown> {
  if ((await store.size(path)) === null) return null
  const begun: Buffer[] = []
  for await (const chunk of store.stream(path)) {
    const stop = chunk.indexOf(NEWLINE)
    // A copy, because the store may reuse the memory of the chunk.
    begun.push(Buffer.from(stop < 0 ? chunk : chunk.subarray(0, stop)))
    if (stop < 0) continue
    const line = checkedLine(Buffer.concat(begun))
    return line === null ? null : JSON.parse(`${line.text}}`)
  }
  return null
}

const NEWLINE = 10

/**
 * Encodes lines in order. A line is a JSON object that ends in two additional members, `flushed` and `crc`. `flushed`
 * is the number of bytes of the file that were fsynced before the line was written. The first half of `crc` is the
 * CRC-32 of the text before it; it detects torn lines and flipped bits. The second half continues the CRC-32 of the
 * previous line; it detects missing, duplicate and moved lines.
 */
export function lineWriter(previous: number): (line: object, flushed: number) => Uint8Array {
  let chained = previous
  return (line, flushed) => {
    const text = JSON.stringify(line).slice(0, -1)
    const body = `${text}${text === '{' ? '' : ','}"flushed":${flushed}`
    chained = crc32(body, chained)
    return Buffer.from(`${body},"crc":"${hex(crc32(body))}${hex(chained)}"}\n`)
  }
}

const TRAILER = /,?"flushed":(\d{1,16}),"crc":"([0-9a-f]{8})([0-9a-f]{8})"\}$/
const CRC_LENGTH = ',"crc":"0000000000000000"}'.length
const MAX_TRAILER_LENGTH = ',"flushed":0000000000000000'.length + CRC_LENGTH

type CheckedLine = {
  /** The JSON of the line without the two members and the closing brace. */
  readonly text: string
  /** The text that the checksums cover. */
  readonly body: Buffer
  readonly flushed: number
  readonly chained: number
}

/** @returns null if the line does not match its own checksum */
function checkedLine(bytes: Buffer): CheckedLine | null {
  const match = TRAILER.exec(bytes.subarray(-MAX_TRAILER_LENGTH).toString('latin1'))
  if (match === null) return null
  const body = bytes.subarray(0, bytes.length - CRC_LENGTH)
  if (Number.parseInt(match[2]!, 16) !== crc32(body)) return null
  const text = bytes.subarray(0, bytes.length - match[0].length).toString()
  return { text, body, flushed: Number(match[1]), chained: Number.parseInt(match[3]!, 16) }
}

function hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0')
}

function damaged(path: string, line: number, how: string): ExportError {
  return new ExportError(
    'damaged',
    `Line ${line} of the checkpoint ${how}`,
    path,
    'Restore the file from a backup, or start over with --fresh; nothing was changed.',
  )
}
