import type { Log } from '../../core/index.ts'
import type { StoredFile } from './stored-file.ts'

// Appended bytes are written before the fsync when there are so many of them.
const SEGMENT_BYTES = 8 << 20

/** How a file begins and grows. */
export type Growth = {
  /** Writes the first object, with a new epoch; removes what was there. */
  begin(bytes: Uint8Array): Promise<StoredFile>
  /** Adds a segment. */
  grow(file: StoredFile, bytes: Uint8Array): Promise<StoredFile>
}

/**
 * A log whose every fsync writes one object of a {@link StoredFile}. Appended bytes are in memory until then.
 * @param found null: the log begins empty
 */
export function growingLog(path: string, found: StoredFile | null, growth: Growth): Log {
  let file = found
  let waiting: Uint8Array[] = []
  let waitingBytes = 0

  const writeOut = async (): Promise<void> => {
    if (waitingBytes === 0) return
    const bytes = Buffer.concat(waiting)
    file = file === null ? await growth.begin(bytes) : await growth.grow(file, bytes)
    waiting = []
    waitingBytes = 0
  }

  return {
    path,
    get size() {
      return (file?.size ?? 0) + waitingBytes
    },
    async append(chunks) {
      for (const chunk of chunks) {
        // The caller may reuse its memory.
        waiting.push(Uint8Array.from(chunk))
        waitingBytes += chunk.byteLength
      }
      if (waitingBytes >= SEGMENT_BYTES) await writeOut()
    },
    fsync: writeOut,
    close: writeOut,
  }
}

/** A log that is one object, which each fsync writes anew: for short files, and files that others read as they are. */
export function smallLog(path: string, found: Uint8Array, write: (bytes: Uint8Array) => Promise<void>): Log {
  let bytes: Uint8Array = found
  let waiting: Uint8Array[] = []
  const writeOut = async (): Promise<void> => {
    if (waiting.length === 0) return
    const all = Buffer.concat([bytes, ...waiting])
    await write(all)
    bytes = all
    waiting = []
  }
  return {
    path,
    get size() {
      return waiting.reduce((sum, { byteLength }) => sum + byteLength, bytes.byteLength)
    },
    async append(chunks) {
      for (const chunk of chunks) waiting.push(Uint8Array.from(chunk))
    },
    fsync: writeOut,
    close: writeOut,
  }
}
