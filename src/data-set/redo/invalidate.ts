import { ExportError, type NamedPipeline, type Pipeline } from '../../core/index.ts'
import type { Plan } from '../../pipeline/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  hasEnded,
  type JournalEntry,
  presentOf,
  type SealedShard,
} from '../../state/index.ts'
import { planFor } from '../plan/plan-state.ts'

/**
 * @param patterns keys of partitions, or globs; one without a slash matches all windows of a query
 * @returns null when none of them is exported yet
 * @throws ExportError `config` when a pattern matches nothing, or rows that the pipeline does not request would be lost
 */
export async function planRedo(
  pipeline: NamedPipeline,
  state: CheckpointState | null,
  patterns: readonly string[],
  nowMs: number,
): Promise<Invalidation | null> {
  const plan = planFor(pipeline, nowMs, state)
  const { default: picomatch } = await import('picomatch')
  const matchers = patterns.map((pattern) => ({
    pattern,
    matches: picomatch(pattern.includes('/') ? pattern : `${pattern}/*`, { dot: true }),
    isUsed: false,
  }))
  const begun = new Set<string>()
  for (const { key } of plan.partitions()) {
    for (const matcher of matchers) {
      if (!matcher.matches(key)) continue
      matcher.isUsed = true
      if (state?.partitions.get(key) !== undefined) begun.add(key)
    }
  }
  const unused = matchers.filter(({ isUsed }) => !isUsed).map(({ pattern }) => pattern)
  if (unused.length > 0)
    throw new ExportError({
      kind: 'config',
      what: `--redo ${unused.join(', ')} matches no partition of the pipeline`,
      where: pipeline.file,
      next: 'Name a partition as `status` does, such as domain.example.com/2024-01-01..2024-02-01, or a glob such as "domain.example.com/*"; nothing was changed.',
    })
  if (state === null || begun.size === 0) return null
  const redo = invalidationOf(state, { partitions: begun, shards: [] })
  requirePlanned(pipeline, plan, redo)
  return redo
}

function requirePlanned(pipeline: Pipeline, plan: Plan, redo: Invalidation): void {
  const left = new Set(redo.partitions)
  for (const { key } of plan.partitions()) left.delete(key)
  for (const key of left)
    throw new ExportError({
      kind: 'config',
      what: `${key} shares a shard with a partition to be exported anew, and the pipeline no longer requests it, so its rows would be lost`,
      where: CHECKPOINT_PATH,
      next: `Put its query and window back into ${pipeline.file}, or start over with --fresh; nothing was changed.`,
    })
}

/** Sealed shards and their rows stay until `swapRedone`; what is not finished is dropped. */
export function redoEntry({ partitions, chains }: Invalidation): JournalEntry {
  return { kind: 'redo', partitions: [...partitions], chains: [...chains] }
}

export type Invalidation = {
  readonly partitions: ReadonlySet<string>
  /** Numbers of chains that begin anew. */
  readonly chains: ReadonlySet<number>
  /** The sealed shards with rows of these partitions, which stay until then. */
  readonly former: readonly SealedShard[]
  readonly rows: number
  /** The pages of their first export, which is the expected cost. */
  readonly pages: number
}

/** A shard goes with all its partitions, an unfinished chain with its windows. Pruned ones stay, unless in the seed. */
export function invalidationOf(
  state: CheckpointState,
  seed: { readonly partitions: Iterable<string>; readonly shards: Iterable<number> },
): Invalidation {
  const partitions = new Set(seed.partitions)
  const shards = new Set<number>()
  const chains = new Set<number>()
  const lost = new Set(seed.shards)
  const add = (key: string): void => {
    if (presentOf(state, key)?.state !== 'pruned') partitions.add(key)
  }
  const take = (shard: number, within: Iterable<string>): boolean => {
    if (shards.has(shard)) return false
    const all = [...within]
    if (!lost.has(shard) && !all.some((key) => partitions.has(key))) return false
    shards.add(shard)
    for (const key of all) add(key)
    return true
  }
  for (let size = -1; size < partitions.size + shards.size; ) {
    size = partitions.size + shards.size
    for (const { shard, partitions: within } of state.shards) take(shard, within)
    for (const { shard, partitions: within } of state.openShards.values()) take(shard, within)
    for (const { chain, query, windows, feed } of state.chains.values()) {
      if (chains.has(chain)) continue
      // A feed can only be read again as a whole.
      const names = feed === null ? windows.names : [...(state.partitions.branches.get(query)?.keys() ?? [])]
      const keys = names.map((name) => `${query}/${name}`)
      if (!keys.some((key) => partitions.has(key))) continue
      chains.add(chain)
      for (const key of keys) {
        if (state.partitions.get(key) === undefined) continue
        const folded = presentOf(state, key)
        if (feed !== null || folded === undefined || !hasEnded(folded)) add(key)
      }
    }
  }
  const former = [...state.shards].filter(({ shard }) => shards.has(shard))
  let [rows, pages] = [0, 0]
  for (const key of partitions) {
    const exported = state.partitions.get(key)
    rows += exported?.rows ?? 0
    pages += exported?.pages ?? 0
  }
  return { partitions, chains, former, rows, pages }
}
