import { crc32 } from 'node:zlib'
import { ExportError, type Log, type Store } from '../core/index.ts'

/** Only grows; a line counts from the moment `append` resolves. */
export type Journal = {
  readonly size: number
  append(lines: readonly object[]): Promise<void>
  close(): Promise<void>
}

/**
 * Opens the journal for appending after `size` good bytes. Appends that arrive while one is being flushed
 * go out together, so that partitions in flight share the cost of a flush.
 */
export async function openJournal(store: Store, path: string, size: number): Promise<Journal> {
  const log = await store.openLog(path, size)
  let waiting: { bytes: Uint8Array[]; written: PromiseWithResolvers } | null = null
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
        const batch = { bytes: [] as Uint8Array[], written: withResolvers() }
        waiting = batch
        const turn = writing.then(() => {
          waiting = null
          return writeOut(log, batch.bytes)
        })
        turn.then(batch.written.resolve, batch.written.reject)
        // After a failed write the end of the file is in doubt: everything behind it must fail as well.
        writing = turn
        turn.catch(() => {})
      }
      for (const line of lines) waiting.bytes.push(sealLine(line))
      return waiting.written.promise
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
 * @returns the bytes up to the end of the last good line; null when there is no journal
 * @throws ExportError `damaged` when a good line follows one that does not fit its checksum
 */
export async function readJournal(
  store: Store,
  path: string,
  visit: (line: unknown, number: number) => void,
): Promise<number | null> {
  if ((await store.size(path)) === null) return null
  let rest: Buffer = Buffer.alloc(0)
  let good = 0
  let number = 0
  let bad: number | null = null
  for await (const chunk of store.stream(path)) {
    const bytes =
      rest.length === 0
        ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
        : Buffer.concat([rest, chunk])
    let start = 0
    for (let end = bytes.indexOf(10, start); end >= 0; end = bytes.indexOf(10, start)) {
      number++
      const line = openLine(bytes.subarray(start, end))
      if (line === undefined) bad ??= number
      else {
        // A bad line is a torn one only while no good one follows it.
        if (bad !== null) throw damaged(path, bad)
        visit(line, number)
        good += end + 1 - start
      }
      start = end + 1
    }
    rest = Buffer.from(bytes.subarray(start))
  }
  return good
}

/** The line's JSON with a checksum as its last member: still one JSON object that people and tools can read. */
export function sealLine(line: object): Uint8Array {
  const body = JSON.stringify(line).slice(0, -1)
  return Buffer.from(`${body},"crc":"${checksum(Buffer.from(body))}"}\n`)
}

const SEAL_LENGTH = ',"crc":"00000000"}'.length

function openLine(bytes: Buffer): unknown {
  const body = bytes.subarray(0, Math.max(0, bytes.length - SEAL_LENGTH))
  const seal = bytes.subarray(body.length).toString('latin1')
  if (seal !== `,"crc":"${checksum(body)}"}`) return undefined
  return JSON.parse(`${body.toString()}}`)
}

function checksum(bytes: Uint8Array): string {
  return crc32(bytes).toString(16).padStart(8, '0')
}

function damaged(path: string, line: number): ExportError {
  return new ExportError(
    'damaged',
    `Line ${line} of the checkpoint does not fit its checksum`,
    path,
    'Restore the file from a backup, or start over with --fresh; nothing was changed.',
  )
}

type PromiseWithResolvers = { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void }

/** `Promise.withResolvers`, which Node has only from version 22 on. */
function withResolvers(): PromiseWithResolvers {
  let resolve: () => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<void>((ok, fail) => {
    resolve = ok
    reject = fail
  })
  return { promise, resolve, reject }
}
