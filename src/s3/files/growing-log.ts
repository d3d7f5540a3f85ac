import type { Log } from '../../core/index.ts'
import type { StoredFile } from './stored-file.ts'

// What waits for a flush is written out before it when it comes to this.
const PIECE_BYTES = 8 << 20

/** How a file comes to be and grows. */
export type Growth = {
  /** Writes the first object, with an epoch of its own; what was there goes. */
  begin(bytes: Uint8Array): Promise<StoredFile>
  /** Adds another one behind it. */
  grow(file: StoredFile, bytes: Uint8Array): Promise<StoredFile>
}

/**
 * A log as {@link StoredFile} has it: each flush is one object. What was appended and not flushed is in memory.
 * @param found null: it begins anew
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
        // The caller may go on to use its memory for something else.
        waiting.push(Uint8Array.from(chunk))
        waitingBytes += chunk.byteLength
      }
      if (waitingBytes >= PIECE_BYTES) await writeOut()
    },
    fsync: writeOut,
    close: writeOut,
  }
}
