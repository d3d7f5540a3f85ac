import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log, Store } from '../../src/core/index.ts'

/** Numbers from 0 up to, but not including, 1. */
export type Draw = () => number

/**
 * A store on a disk that may lose power. Appends to a log and truncations that were not fsynced reach the disk in any
 * mixture: each block holds the old bytes, the new ones or none, and the file has any size. Everything else that a
 * store does is durable once it resolves. A process may end and another one continue without a power cut.
 */
export function lossyStore(store: Store, root: string, blockBytes: number) {
  /** Durable contents of the logs that have changes not fsynced yet, by path. */
  const durable = new Map<string, Buffer>()
  const contentOf = (path: string): Buffer => {
    const full = join(root, path)
    return existsSync(full) ? readFileSync(full) : Buffer.alloc(0)
  }
  const changes = (path: string): void => {
    if (!durable.has(path)) durable.set(path, contentOf(path))
  }
  const logOf = (log: Log): Log => ({
    path: log.path,
    get size() {
      return log.size
    },
    append: (chunks) => {
      changes(log.path)
      return log.append(chunks)
    },
    fsync: async () => {
      await log.fsync()
      durable.delete(log.path)
    },
    close: () => log.close(),
  })
  const lossy: Store = {
    ...store,
    openLog: async (path, size) => {
      if ((await store.size(path)) !== size) changes(path)
      return logOf(await store.openLog(path, size))
    },
    writeWhole: async (path, chunks) => {
      await store.writeWhole(path, chunks)
      durable.delete(path)
    },
    publish: async (from, to) => {
      const before = durable.get(from)
      await store.publish(from, to)
      durable.delete(from)
      durable.delete(to)
      if (before !== undefined) durable.set(to, before)
    },
    remove: async (path) => {
      await store.remove(path)
      durable.delete(path)
    },
  }
  return {
    store: lossy,
    /** Cuts the power. `draw` decides what each block holds afterwards. */
    cut(draw: Draw): void {
      for (const [path, before] of durable) {
        if (!existsSync(join(root, path))) continue
        writeFileSync(join(root, path), mixed(before, contentOf(path), blockBytes, draw))
      }
      durable.clear()
    },
  }
}

/** What a file holds after a power cut while it changed from `before` to `after`. */
export function mixed(before: Buffer, after: Buffer, blockBytes: number, draw: Draw): Buffer {
  const [least, most] = [Math.min(before.length, after.length), Math.max(before.length, after.length)]
  const sizes = [least, most, least + Math.floor(draw() * (most - least + 1))]
  const found = Buffer.alloc(sizes[Math.floor(draw() * sizes.length)]!)
  // After some cuts nearly all blocks are new, after others nearly none, after some all but a few adjacent ones.
  const [share, isHole] = [draw(), draw() < 0.5]
  const [from, until] = [draw(), draw()].map((part) => part * found.length)
  for (let start = 0; start < found.length; start += blockBytes) {
    const isNew = isHole ? start < from! || start > from! + (until! - from!) * share : draw() < share
    const source = isNew ? after : before
    source.subarray(start, start + blockBytes).copy(found, start)
  }
  return found
}
