import type { Log } from '../../core/index.ts'

/** A log that is one object, written anew with each flush: for what stays short, and what others read as it is. */
export function smallLog(path: string, found: Uint8Array, write: (bytes: Uint8Array) => Promise<void>): Log {
  let bytes: Uint8Array = found
  let waiting: Uint8Array[] = []
  const flush = async (): Promise<void> => {
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
    fsync: flush,
    close: flush,
  }
}
