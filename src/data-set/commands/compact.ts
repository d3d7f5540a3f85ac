import { getOrInsert, type Pipeline, placeOf } from '../../core/index.ts'
import { type CheckpointState, isRedone, type SealedShard, splitPath } from '../../state/index.ts'
import { type Change, NO_CHANGE } from '../change.ts'
import type { ChangeOptions } from '../options.ts'
import type { ChangedDataSet, WritableDataSet } from '../writable-data-set.ts'

export type CompactResult = {
  readonly pipeline: string
  readonly folders: number
  readonly shards: { readonly before: number; readonly after: number }
  readonly rows: number
  /** Their sizes; `after` is null before they are written. */
  readonly bytes: { readonly before: number; readonly after: number | null }
}

const MANY_SMALL_SHARDS = 30

/**
 * @param minShards a folder with fewer small shards stays as it is
 * @throws ExportError `damaged` when a shard is not what was written; as {@link WritableDataSet.change}
 */
export async function compactDataSet(
  dataSet: WritableDataSet,
  minShards: number,
  options: ChangeOptions,
): Promise<CompactResult> {
  const { result, came } = await dataSet.change(options, (at) => compaction(at, minShards))
  const { bytes } = result
  return { ...result, bytes: came.length === 0 ? bytes : { ...bytes, after: bytesOf(came) } }
}

function compaction({ pipeline, state }: ChangedDataSet, minShards: number): Change<CompactResult> {
  const all = state === null ? [] : groupsOf(state, pipeline, minShards)
  const groups = all.map((of) => ({ of, isEmptied: false }))
  return { ...NO_CHANGE, result: resultOf(pipeline, all), groups }
}

/** Small neighbours become one, as many as fit whole. What was written together keeps its place, for the next time. */
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
      const alike = getOrInsert(ofQueries, `${shard.schema ?? 0} ${queriesOf(shard)}`, () => [])
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

function byFolder(state: CheckpointState): Map<string, SealedShard[]> {
  const folders = new Map<string, SealedShard[]>()
  for (const shard of state.shards) {
    if (shard.rows > 0 && !isRedone(state, shard))
      getOrInsert(folders, splitPath(shard.path)[0], () => []).push(shard)
  }
  return folders
}

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
