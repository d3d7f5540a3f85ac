import type { FileChunks, OwnedStore, Store } from '../../src/core/index.ts'

export type MemoryStore = Store &
  OwnedStore & {
    /** Contents by path, which a test may change. */
    readonly files: Map<string, Buffer>
  }

/** The part of a store that a log and its checkpoint need, for owners that follow each other. */
export function memoryStore(files: Iterable<readonly [string, Buffer]> = []): MemoryStore {
  const all = new Map(files)
  const store: Partial<MemoryStore> = {
    files: all,
    async read(path, start = 0, end = Infinity) {
      return all.has(path) ? new Uint8Array(all.get(path)!.subarray(start, end)) : null
    },
    async *stream(path) {
      for (let at = 0; at < all.get(path)!.length; at += 1000) yield all.get(path)!.subarray(at, at + 1000)
    },
    size: async (path) => all.get(path)?.length ?? null,
    list: async (folder) =>
      [...all.keys()].flatMap((path) =>
        path.startsWith(`${folder}/`) ? [path.slice(folder.length + 1)] : [],
      ),
    async create(path, chunks) {
      await new Promise(setImmediate)
      if (all.has(path)) return false
      all.set(path, joined(chunks))
      return true
    },
    async replace(path, chunks) {
      await new Promise(setImmediate)
      all.set(path, joined(chunks))
    },
    remove: async (path) => void all.delete(path),
    requireLock: async () => {},
    own: async () => store as MemoryStore,
  }
  return store as MemoryStore
}

function joined(chunks: FileChunks): Buffer {
  return Buffer.concat(Array.from(chunks as Iterable<string>, (chunk) => Buffer.from(chunk)))
}
