import { crc32 } from 'node:zlib'
import { ExportError, type Store, serial } from '../../core/index.ts'

/** A line of the journal counts from the moment `append` resolves. */
type Journal = {
  readonly size: number
  append(lines: readonly object[]): Promise<void>
  close(): Promise<void>
}

/** The offset behind the last valid line of a journal, and its checksum, on which that of the next line builds. */
export type JournalEnd = { readonly size: number; readonly checksum: number }

export const JOURNAL_START: JournalEnd = { size: 0, checksum: 0 }

/**
 * Opens the journal for appending after its valid lines. Appends that arrive during an fsync are written together, so that
 * chains share the cost of the next one (group commit). Lines are written only after all earlier lines are fsynced. Every
 * line has the offset up to which that is so, which `readJournal` needs.
 */
export async function openJournal(store: Store, path: string, end: JournalEnd): Promise<Journal> {
  const log = await store.openLog(path, end.size)
  // Lines of a killed process were read, but may not be on the disk yet.
  if (end.size > 0) await log.fsync()
  const encode = lineWriter(end.checksum)
  let waiting: { readonly bytes: Uint8Array[]; readonly done: Promise<void> } | null = null
  // After a failed write the end of the file is unknown: everything behind it must fail as well.
  const inTurn = serial('stop')
  /** Where the waiting lines will begin: all bytes before that are fsynced by then. */
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
        const done = inTurn(async () => {
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
      await inTurn(async () => {}).catch(() => {})
      await log.close()
    },
  }
}

/** Forces to the disk what a killed process may have left in the system's cache; changes nothing. */
export async function fsyncJournal(store: Store, path: string): Promise<void> {
  const log = await store.openLog(path, (await store.size(path)) ?? 0)
  try {
    await log.fsync()
  } finally {
    await log.close()
  }
}

/**
 * Reads a journal line by line; `visit` gets each, parsed. After lost power the file may hold any mixture of old, new and
 * empty blocks. The journal ends at the first line that is invalid. No caller has learned that this line or a later one is
 * durable, unless a later line says that it was fsynced.
 * @returns where the last valid line ends; null when there is no journal
 * @throws ExportError `damaged` when an invalid line was fsynced
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

/** The first line, without reading the whole journal; null when it is missing or invalid. */
export async function readFirstLine(store: Store, path: string): Promise<unknown> {
  if ((await store.size(path)) === null) return null
  const begun: Buffer[] = []
  for await (const chunk of store.stream(path)) {
    const stop = chunk.indexOf(NEWLINE)
    // A copy: the store may use the chunk's memory again.
    begun.push(Buffer.from(stop < 0 ? chunk : chunk.subarray(0, stop)))
    if (stop < 0) continue
    const line = checkedLine(Buffer.concat(begun))
    return line === null ? null : JSON.parse(`${line.text}}`)
  }
  return null
}

const NEWLINE = 10

/**
 * Encodes lines one after the other. Each gets two last members, `flushed` and `crc`, and stays a JSON object that people
 * and tools can read. `flushed` is how many bytes of the file were fsynced before the line was written. The first half of
 * `crc` is the CRC-32 of the text before it, which shows a torn or flipped line. The second half continues that of the line
 * before, which shows a line that is missing, doubled or moved.
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
  /** The line as it was given, without its closing brace. */
  readonly text: string
  /** The text that the checksums cover. */
  readonly body: Buffer
  readonly flushed: number
  readonly chained: number
}

/** @returns null when the line does not match its own checksum */
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
