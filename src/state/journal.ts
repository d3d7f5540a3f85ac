import { crc32 } from 'node:zlib'
import { ExportError, type Log, type Store } from '../core/index.ts'

/** Only grows; a line counts from the moment `append` resolves. */
export type Journal = {
  readonly size: number
  append(lines: readonly object[]): Promise<void>
  close(): Promise<void>
}

/** How far a journal is good, and the checksum of its last good line, which the next one builds on. */
export type JournalEnd = { readonly size: number; readonly checksum: number }

export const JOURNAL_START: JournalEnd = { size: 0, checksum: 0 }

/**
 * Opens the journal for appending after its good lines. Appends that arrive while one is being flushed go
 * out together, so that partitions in flight share the cost of a flush.
 */
export async function openJournal(store: Store, path: string, end: JournalEnd): Promise<Journal> {
  const log = await store.openLog(path, end.size)
  const seal = lineSealer(end.checksum)
  let waiting: { readonly bytes: Uint8Array[]; readonly written: Promise<void> } | null = null
  let writing: Promise<void> = Promise.resolve()

  const writeOut = async (log: Log, bytes: Uint8Array[]): Promise<void> => {
    await log.append([Buffer.concat(bytes)])
    await log.flush()
  }

  return {
    get size() {
      return log.size
    },
    append(lines) {
      if (waiting === null) {
        const bytes: Uint8Array[] = []
        const written = writing.then(() => {
          waiting = null
          return writeOut(log, bytes)
        })
        waiting = { bytes, written }
        // After a failed write the end of the file is in doubt: everything behind it must fail as well.
        writing = written
        written.catch(() => {})
      }
      for (const line of lines) waiting.bytes.push(seal(line))
      return waiting.written
    },
    async close() {
      await writing.catch(() => {})
      await log.close()
    },
  }
}

/**
 * Reads a journal line by line. What a crash left of its last write is passed over; `visit` gets every
 * other line, parsed.
 * @returns where the last good line ends; null when there is no journal
 * @throws ExportError `damaged` when a good line follows one that is not
 */
export async function readJournal(
  store: Store,
  path: string,
  visit: (line: unknown, number: number) => void,
): Promise<JournalEnd | null> {
  if ((await store.size(path)) === null) return null
  let end = JOURNAL_START
  let number = 0
  let bad: number | null = null
  const take = (bytes: Buffer): void => {
    number++
    const line = openLine(bytes)
    if (line === null) {
      bad ??= number
      return
    }
    // A bad line is a torn one only while no good one follows it.
    if (bad !== null) throw damaged(path, bad, 'does not fit its checksum')
    const checksum = crc32(line.body, end.checksum)
    if (line.chained !== checksum) throw damaged(path, number, 'does not follow from the one before it')
    visit(JSON.parse(`${line.body.toString()}}`), number)
    end = { size: end.size + bytes.length + 1, checksum }
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

const NEWLINE = 10

/**
 * Seals lines one after the other: each gets a last member `crc`, and stays one JSON object that people and
 * tools can read. Its first half is the CRC-32 of the text before it, which tells a torn or flipped line; the
 * second goes on from the line before, which tells a line that is missing, doubled or moved.
 */
export function lineSealer(previous: number): (line: object) => Uint8Array {
  let chained = previous
  return (line) => {
    const body = JSON.stringify(line).slice(0, -1)
    chained = crc32(body, chained)
    return Buffer.from(`${body},"crc":"${hex(crc32(body))}${hex(chained)}"}\n`)
  }
}

const SEAL = /^,"crc":"([0-9a-f]{8})([0-9a-f]{8})"\}$/
const SEAL_LENGTH = ',"crc":"0000000000000000"}'.length

/** @returns null when the line does not fit its own checksum */
function openLine(bytes: Buffer): { body: Buffer; chained: number } | null {
  const body = bytes.subarray(0, Math.max(0, bytes.length - SEAL_LENGTH))
  const match = SEAL.exec(bytes.subarray(body.length).toString('latin1'))
  if (match === null || Number.parseInt(match[1]!, 16) !== crc32(body)) return null
  return { body, chained: Number.parseInt(match[2]!, 16) }
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
