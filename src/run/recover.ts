import { ExportError, type Store } from '../core/index.ts'
import { openShardPath, setAsideStrangers } from '../load/index.ts'
import { type CheckpointState, rewriteCheckpoint, type SealLine } from '../state/index.ts'

/**
 * Brings the data set in line with its checkpoint: makes sure that every finished shard is there at its full
 * length, gives those their final names that a crash kept from it, and takes away what is not on record.
 * @throws ExportError `damaged` when one is missing or short; nothing is changed then
 */
export async function settleShards(
  store: Store,
  state: CheckpointState,
  warn: (message: string) => void,
): Promise<void> {
  const unpublished: SealLine[] = []
  await forEach(state.shards, async (sealed) => {
    const { shard, path, bytes } = sealed
    const size = await store.size(path)
    if (size === bytes) return
    if (size !== null || (await store.size(openShardPath(shard))) !== bytes) throw damaged(sealed, size)
    unpublished.push(sealed)
  })
  for (const { shard, path } of unpublished) await store.publish(openShardPath(shard), path)
  const known = new Set(state.shards.map(({ path }) => path))
  await forEach(state.partsOf.keys(), (folder) =>
    setAsideStrangers(store, folder, (path) => known.has(path), warn),
  )
}

// Enough to keep the threads busy that look at files for Node.js.
const LOOKS_AT_ONCE = 32

/** A data set may have half a million shards: looks at many of them at a time. */
async function forEach<T>(items: Iterable<T>, look: (item: T) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]()
  const lane = async (): Promise<void> => {
    for (let next = queue.next(); !next.done; next = queue.next()) await look(next.value)
  }
  await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, lane))
}

function damaged({ path, bytes }: SealLine, size: number | null): ExportError {
  return new ExportError(
    'damaged',
    size === null
      ? 'A finished shard is missing'
      : `A finished shard holds ${size} bytes instead of ${bytes}`,
    path,
    'Put it back as it was (rows already paid for are in it), or start over with --fresh; nothing was changed.',
  )
}

/**
 * Goes back to before the pages whose rows did not survive in an open shard: they, and what came after them
 * in their chains, are asked for again.
 * @param intact number of intact pages by shard
 * @returns how many pages were given up
 */
export async function rollBack(
  store: Store,
  state: CheckpointState,
  intact: ReadonlyMap<number, number>,
): Promise<number> {
  const seen = new Map<number, number>()
  const firstLostGeneration = new Map<number, number>()
  for (const [shard, pages] of intact) {
    const lost = state.openShards.get(shard)?.pages[pages]
    if (lost !== undefined) firstLostGeneration.set(shard, lost.generation)
  }
  const brokenChains = new Set<string>()
  let given = 0
  await rewriteCheckpoint(store, (line) => {
    if (line.kind === 'chunk') {
      return line.generation >= (firstLostGeneration.get(line.shard) ?? Number.POSITIVE_INFINITY)
        ? null
        : line
    }
    if (line.kind === 'restart' || line.kind === 'failed')
      return brokenChains.has(line.partition) ? null : line
    if (line.kind !== 'page') return line
    if (line.shard !== undefined) {
      const index = seen.get(line.shard) ?? 0
      seen.set(line.shard, index + 1)
      if (index >= (intact.get(line.shard) ?? Number.POSITIVE_INFINITY)) brokenChains.add(line.partition)
    }
    if (!brokenChains.has(line.partition)) return line
    given++
    return null
  })
  return given
}
