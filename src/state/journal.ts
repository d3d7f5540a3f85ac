import { crc32 } from 'node:zlib'
import { ExportError, type Store, serial } from '../core/index.ts'

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
 * out together, so that partitions in flight share the cost of a flush. Nothing is written before all that was
 * written earlier is flushed, and every line says how far that is: `readJournal` goes by it.
 */
export async function openJournal(store: Store, path: string, end: JournalEnd): Promise<Journal> {
  const log = await store.openLog(path, end.size)
  // What a killed process wrote was read back, but need not be on the disk.
  if (end.size > 0) await log.fsync()
  const seal = lineSealer(end.checksum)
  let waiting: { readonly bytes: Uint8Array[]; readonly written: Promise<void> } | null = null
  // After a failed write the end of the file is unknown: everything behind it must fail as well.
  const inTurn = serial('stop')
  /** Where the lines that wait will begin: all before that is flushed by then. */
  let begin = end.size
  let sealed = end.size

  return {
    get size() {
      return log.size
    },
    append(lines) {
      if (waiting === null) {
        begin = sealed
        const bytes: Uint8Array[] = []
        const written = inTurn(async () => {
          waiting = null
          await log.append([Buffer.concat(bytes)])
          await log.fsync()
        })
        waiting = { bytes, written }
      }
      for (const line of lines) {
        const bytes = seal(line, begin)
        sealed += bytes.byteLength
        waiting.bytes.push(bytes)
      }
      return waiting.written
    },
    async close() {
      await inTurn(async () => {}).catch(() => {})
      await log.close()
    },
  }
}

/** Brings to the disk what a killed process may have left in the system's memory; changes nothing. */
export async function flushJournal(store: Store, path: string): Promise<void> {
  const log = await store.openLog(path, (await store.size(path)) ?? 0)
  try {
    await log.fsync()
  } finally {
    await log.close()
  }
}

/**
 * Reads a journal line by line; `visit` gets each, parsed. Where lost power let any mixture of old, new and empty
 * blocks come to the disk it ends at the first line that is not good: nobody was ever told that this or anything
 * behind it is durable, unless a line further on says that it was flushed.
 * @returns where the last good line ends; null when there is no journal
 * @throws ExportError `damaged` when a line is not good that was flushed
 */
export async function readJournal(
  store: Store,
  path: string,
  visit: (line: unknown, number: number) => void,
): Promise<JournalEnd | null> {
  if ((await store.size(path)) === null) return null
  let end = JOURNAL_START
  let number = 0
  let bad: { readonly number: number; readonly how: string } | null = null
  const take = (bytes: Buffer): void => {
    number++
    const line = openLine(bytes)
    const checksum = line === null ? null : crc32(line.body, end.checksum)
    if (bad === null && line !== null && line.chained === checksum) {
      visit(JSON.parse(`${line.text}}`), number)
      end = { size: end.size + bytes.length + 1, checksum }
      return
    }
    const how = line === null ? 'does not fit its checksum' : 'does not follow from the one before it'
    bad ??= { number, how }
    if (line !== null && line.flushed > end.size) throw damaged(path, bad.number, bad.how)
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

/** The first line alone, however long the journal is; null when there is none that is good. */
export async function readFirstLine(store: Store, path: string): Promise<unknown> {
  if ((await store.size(path)) === null) return null
  const begun: Buffer[] = []
  for await (const chunk of store.stream(path)) {
    const stop = chunk.indexOf(NEWLINE)
    // A copy: the store may use the chunk's memory again.
    begun.push(Buffer.from(stop < 0 ? chunk : chunk.subarray(0, stop)))
    if (stop < 0) continue
    const line = openLine(Buffer.concat(begun))
    return line === null ? null : JSON.parse(`${line.text}}`)
  }
  return null
}

const NEWLINE = 10

/**
 * Seals lines one after the other: each gets two last members, `flushed` and `crc`, and stays one JSON object that
 * people and tools can read. `flushed` says how much of the file was on stable storage before the line was written.
 * The first half of `crc` is the CRC-32 of the text before it, which tells a torn or flipped line; the second goes on
 * from the line before, which tells a line that is missing, doubled or moved.
 */
export function lineSealer(previous: number): (line: object, flushed: number) => Uint8Array {
  let chained = previous
  return (line, flushed) => {
    const text = JSON.stringify(line).slice(0, -1)
    const body = `${text}${text === '{' ? '' : ','}"flushed":${flushed}`
    chained = crc32(body, chained)
    return Buffer.from(`${body},"crc":"${hex(crc32(body))}${hex(chained)}"}\n`)
  }
}

const SEAL = /,?"flushed":(\d{1,16}),"crc":"([0-9a-f]{8})([0-9a-f]{8})"\}$/
const CRC_LENGTH = ',"crc":"0000000000000000"}'.length
const MAX_SEAL_LENGTH = ',"flushed":0000000000000000'.length + CRC_LENGTH

type OpenedLine = {
  /** What was sealed, without its closing brace. */
  readonly text: string
  /** What the checksums are of. */
  readonly body: Buffer
  readonly flushed: number
  readonly chained: number
}

/** @returns null when the line does not fit its own checksum */
function openLine(bytes: Buffer): OpenedLine | null {
  const match = SEAL.exec(bytes.subarray(-MAX_SEAL_LENGTH).toString('latin1'))
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
