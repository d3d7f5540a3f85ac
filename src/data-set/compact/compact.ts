import { getOrInsert, type Pipeline, placeOf } from '../../core/index.ts'
import { type CheckpointState, type SealedShard, splitPath } from '../../state/index.ts'
import { namePipeline } from '../queries.ts'
import { type ChangeOptions, noSwap, type Swap, swapShards } from '../swap.ts'

export type CompactResult = {
  readonly pipeline: string
  /** Folders with shards that are written together. */
  readonly folders: number
  /** The number of these shards, and of those that take their places. */
  readonly shards: { readonly before: number; readonly after: number }
  /** The rows in them. */
  readonly rows: number
  /** Their sizes; `after` is null before they are written. */
  readonly bytes: { readonly before: number; readonly after: number | null }
}

type CompactOptions = ChangeOptions & {
  /** A folder with fewer small shards stays as it is. */
  readonly minShards: number
}

/** A folder with more small shards is worth a word. */
const MANY_SMALL_SHARDS = 30

/**
 * Writes the small shards of each folder together.
 * @throws ExportError `damaged` when a shard is not what was written; as `swapShards`
 */
export function compactDataSet(given: Pipeline, options: CompactOptions): Promise<CompactResult> {
  const pipeline = namePipeline(given, options.maskKey)
  return swapShards(pipeline, options, {
    plan: (state) => compaction(pipeline, state, options.minShards),
    done: ({ bytes, ...result }, came) => ({ ...result, bytes: { ...bytes, after: bytesOf(came) } }),
  })
}

function compaction(
  pipeline: Pipeline,
  state: CheckpointState | null,
  minShards: number,
): Swap<CompactResult> {
  const all = state === null ? [] : groupsOf(state, pipeline, minShards)
  const located = (group: readonly SealedShard[]) => group.map((shard) => ({ shard, path: shard.path }))
  return {
    ...noSwap(resultOf(pipeline, all)),
    groups: all.map((group) => ({ of: located(group), isEmptied: false })),
  }
}

/**
 * Sealed shards that become one each: of the small ones of a folder neighbours with rows of the same queries, as many as
 * fit together whole. What was written together keeps its place, so that a second time there is nothing to do.
 */
function groupsOf(
  state: CheckpointState,
  { load: { shardRows } }: Pipeline,
  minShards: number,
): readonly (readonly SealedShard[])[] {
  const groups: SealedShard[][] = []
  for (const inFolder of byFolder(state).values()) {
    if (inFolder.filter(({ rows }) => rows < shardRows).length < minShards) continue
    const ofQueries = new Map<string, SealedShard[][]>()
    // A full one takes in nothing.
    for (const shard of inFolder.sort((a, b) => firstPart(a) - firstPart(b))) {
      const alike = getOrInsert(ofQueries, queriesOf(shard), () => [])
      const last = alike.at(-1)
      if (last !== undefined && rowsOf(last) + shard.rows <= shardRows) last.push(shard)
      else alike.push([shard])
    }
    for (const alike of ofQueries.values()) groups.push(...alike.filter(({ length }) => length > 1))
  }
  return groups
}

/** Where its first rows were written. */
function firstPart({ path, stands_for = [] }: SealedShard): number {
  return stands_for[0]?.[0] ?? placeOf(path).part
}

/** Of others, `run --redo` would have to request the rows, too. */
function queriesOf({ partitions }: SealedShard): string {
  return JSON.stringify([...new Set(partitions.map((key) => splitPath(key)[0]))].sort())
}

function rowsOf(shards: readonly SealedShard[]): number {
  return shards.reduce((sum, { rows }) => sum + rows, 0)
}

/** The sealed shards with rows by folder; without those that are exported again. */
function byFolder(state: CheckpointState): Map<string, SealedShard[]> {
  const folders = new Map<string, SealedShard[]>()
  for (const shard of state.shards) {
    if (shard.rows > 0 && !state.redo.shards.has(shard.shard))
      getOrInsert(folders, splitPath(shard.path)[0], () => []).push(shard)
  }
  return folders
}

/** What to do about a folder with many small shards; null: there is none. */
export function manySmallShards(state: CheckpointState, { load, file }: Pipeline): string | null {
  let most = 0
  for (const shards of byFolder(state).values())
    most = Math.max(most, shards.filter(({ rows }) => rows < load.shardRows).length)
  if (most <= MANY_SMALL_SHARDS) return null
  return `a folder holds ${most} small shards, each of which readers open: \`spillway compact ${file}\` writes them together`
}

function bytesOf(shards: readonly SealedShard[]): number {
  return shards.reduce((sum, { bytes }) => sum + bytes, 0)
}

function resultOf({ name }: Pipeline, groups: readonly (readonly SealedShard[])[]): CompactResult {
  const all = groups.flat()
  return {
    pipeline: name,
    folders: new Set(all.map(({ path }) => splitPath(path)[0])).size,
    shards: { before: all.length, after: groups.length },
    rows: rowsOf(all),
    bytes: { before: bytesOf(all), after: groups.length === 0 ? 0 : null },
  }
}
