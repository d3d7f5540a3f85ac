import { getOrInsert, inGroups, placeOf, standsFor } from '../core/index.ts'
import type { ManifestShard } from '../state/index.ts'
import type { Loaded } from './table/load-rows.ts'

/** What changes in one transaction. */
export type LoadStep = {
  /** Ledger entries that are deleted with their rows. */
  readonly gone: readonly Loaded[]
  /** Whether all rows of the data set are deleted, also those that no entry lists. */
  readonly isAll: boolean
  readonly come: readonly ManifestShard[]
}

/** First what is gone, each time with all missing shards of the same partitions; then the others, one by one. */
export function planOf(shards: readonly ManifestShard[], loaded: readonly Loaded[]): readonly LoadStep[] {
  const { kept, missing } = compare(shards, loaded)
  const gone = loaded.filter((entry) => !kept.has(entry))
  // Entries and shards that share a partition or a path, directly or through others, have the same root.
  const parents = new Map<string, string>()
  const rootOf = (key: string): string => {
    let root = key
    for (let parent = parents.get(root); parent !== undefined && parent !== root; parent = parents.get(root))
      root = parent
    if (parents.has(key)) parents.set(key, root)
    return root
  }
  const join = (keys: readonly string[]): void => {
    for (const key of keys) parents.set(rootOf(key), rootOf(keys[0]!))
  }
  for (const { shard, partitions } of gone) join([shard, ...partitions])
  const placesOf = ({ path, partitions }: ManifestShard): readonly string[] =>
    [path, ...partitions].filter((key) => parents.has(key))
  for (const shard of missing) join(placesOf(shard))
  const steps = new Map<string, { gone: Loaded[]; come: ManifestShard[] }>()
  const stepAt = (key: string) => getOrInsert(steps, rootOf(key), () => ({ gone: [], come: [] }))
  for (const entry of gone) stepAt(entry.shard).gone.push(entry)
  const added: LoadStep[] = []
  for (const shard of missing) {
    const [place] = placesOf(shard)
    if (place === undefined) added.push({ gone: [], isAll: false, come: [shard] })
    else stepAt(place).come.push(shard)
  }
  return [...[...steps.values()].map((step) => ({ ...step, isAll: false })), ...added]
}

/** A shard is in the table if the ledger lists it with its SHA-256, or all shards that it was compacted of. */
function compare(
  shards: readonly ManifestShard[],
  loaded: readonly Loaded[],
): { readonly kept: ReadonlySet<Loaded>; readonly missing: readonly ManifestShard[] } {
  const entries = new Map(loaded.map((entry) => [entry.shard, entry]))
  const folders = new Map<string, Loaded[]>()
  for (const entry of loaded) getOrInsert(folders, placeOf(entry.shard).folder, () => []).push(entry)
  const kept = new Set<Loaded>()
  const missing: ManifestShard[] = []
  for (const shard of shards) {
    const entry = entries.get(shard.path)
    const former =
      entry === undefined && shard.stands_for !== undefined
        ? (folders.get(placeOf(shard.path).folder) ?? []).filter((each) => standsFor(shard, each.shard))
        : []
    const rows = former.reduce((sum, each) => sum + each.rows, 0)
    if (entry?.sha256 === shard.sha256) kept.add(entry)
    else if (former.length > 0 && rows === shard.rows) for (const each of former) kept.add(each)
    else missing.push(shard)
  }
  return { kept, missing }
}

/** The first steps as one: statements cost more than the rows of a small shard. @param atOnce their rows; 0: one step */
export function nextStep(
  steps: readonly LoadStep[],
  atOnce: number,
): { readonly step: LoadStep | null; readonly rest: readonly LoadStep[] } {
  const [some] = inGroups(steps, atOnce, costOf)
  if (some === undefined) return { step: null, rest: [] }
  const step = {
    gone: some.flatMap(({ gone }) => gone),
    isAll: some.some(({ isAll }) => isAll),
    come: some.flatMap(({ come }) => come),
  }
  return { step, rest: steps.slice(some.length) }
}

function costOf({ gone, come }: LoadStep): number {
  return [...gone, ...come].reduce((sum, { rows }) => sum + COST_OF_SHARD + rows, 0)
}

// In rows.
const COST_OF_SHARD = 1000
export const ROWS_AT_ONCE = 100_000
