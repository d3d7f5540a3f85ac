import { getOrInsert, type NamedPipeline, type Pipeline, placeOf } from '../../core/index.ts'
import { type CheckpointState, type Journal, type SealedShard, splitPath } from '../../state/index.ts'
import { type ChangeOptions, changeDataSet, readChangeable } from '../change.ts'
import { namingLocations, openDataSet } from '../open-data-set.ts'
import { namePipeline } from '../queries.ts'
import type { Owner } from '../recover.ts'
import { coderOf, FreeNumbers, rewriteShards } from '../rewriting.ts'
import { stopped } from '../settle.ts'

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
  /** Called before each shard that is written, with its number. */
  readonly onShard: (number: number, of: number) => void
}

/** A folder with more small shards is worth a word. */
const MANY_SMALL_SHARDS = 30

/** Reports what `compactDataSet` would write together; changes nothing. Works during a run. */
export function planCompaction(given: Pipeline, options: CompactOptions): Promise<CompactResult> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    const state = await readChangeable(pipeline, openDataSet(pipeline))
    const groups = state === null ? [] : groupsOf(state, pipeline, options.minShards)
    return resultOf(pipeline, groups, groups.length === 0 ? 0 : null)
  })
}

/**
 * Writes the small shards of each folder together. What takes their places is written first, then committed in one
 * entry; then the data set is settled. A crash before the commit has no effect.
 * @throws ExportError `locked` when a run holds the data set, `damaged` when a shard is not what was written
 */
export function compactDataSet(given: Pipeline, options: CompactOptions): Promise<CompactResult> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    // The lock would create the folder, also if there is no data set.
    const state = await readChangeable(pipeline, openDataSet(pipeline))
    return state === null ? resultOf(pipeline, [], 0) : compact(pipeline, options)
  })
}

function compact(pipeline: NamedPipeline, options: CompactOptions): Promise<CompactResult> {
  const { stop, onShard, minShards } = options
  const change = async (journal: Journal, { store }: Owner): Promise<CompactResult> => {
    const groups = groupsOf(journal.state, pipeline, minShards)
    const coder = await coderOf(pipeline, options)
    const numbers = new FreeNumbers(journal.state)
    const shards: { of: number[]; by: SealedShard }[] = []
    for (const group of groups) {
      if (stop.aborted) throw stopped('Run it again: nothing was changed.')
      onShard(shards.length + 1, groups.length)
      const located = group.map((shard) => ({ shard, path: shard.path }))
      const identity = numbers.take(splitPath(group[0]!.path)[0])
      const by = await rewriteShards(store, pipeline, located, identity, coder, null)
      shards.push({ of: group.map(({ shard }) => shard), by: { ...by, stands_for: standsFor(group) } })
    }
    if (shards.length > 0) await journal.append([{ kind: 'compact', shards }])
    const bytes = shards.reduce((sum, { by }) => sum + by.bytes, 0)
    return resultOf(pipeline, groups, bytes)
  }
  return changeDataSet(pipeline, options, { change, begin: async () => resultOf(pipeline, [], 0) })
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

/** The parts whose rows are in some shards, as ranges. A table that has the rows of these needs no others. */
function standsFor(shards: readonly SealedShard[]): [number, number][] {
  const all = shards.flatMap(({ path, stands_for = [] }) => {
    const { part } = placeOf(path)
    return [[part, part] as const, ...stands_for]
  })
  const ranges: [number, number][] = []
  for (const [from, to] of all.sort(([a], [b]) => a - b)) {
    const last = ranges.at(-1)
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else ranges.push([from, to])
  }
  return ranges
}

function resultOf(
  { name }: Pipeline,
  groups: readonly (readonly SealedShard[])[],
  bytesAfter: number | null,
): CompactResult {
  const all = groups.flat()
  return {
    pipeline: name,
    folders: new Set(all.map(({ path }) => splitPath(path)[0])).size,
    shards: { before: all.length, after: groups.length },
    rows: rowsOf(all),
    bytes: { before: all.reduce((sum, { bytes }) => sum + bytes, 0), after: bytesAfter },
  }
}
