import type { NamedPipeline, OwnedStore } from '../core/index.ts'
import {
  type Journal,
  type JournalEntry,
  type SealedShard,
  type SwapEntry,
  splitPath,
} from '../state/index.ts'
import type { ChangeOptions } from './options.ts'
import { FreeNumbers, rewriteShards, standsFor, type Without, writingOf } from './rewriting.ts'
import { stopped, UNCHANGED } from './settle/settle.ts'

/** What a command does to a data set, as a value: the question, `--dry-run`, `--json` and the commit read the same one. */
export type Change<Result = unknown> = {
  readonly result: Result
  /** Shards that go, each group of which comes as one. */
  readonly groups: readonly Group[]
  readonly without: Without
  /** What is written first; its former content is not needed if the commit does not follow. */
  readonly files: readonly Parameters<OwnedStore['replace']>[]
  readonly entries: readonly JournalEntry[]
  readonly blobs: readonly Uint8Array[]
}

type Group = {
  readonly of: readonly SealedShard[]
  /** Whether no row is left of it, and no shard comes. */
  readonly isEmptied: boolean
}

export const NO_CHANGE: Omit<Change, 'result'> = {
  ...{ groups: [], without: null, files: [], entries: [], blobs: [] },
}

/**
 * What comes is written first, then one commit puts it in its places: a crash before that has no effect.
 * @returns the shards that came
 */
export async function commitChange(
  pipeline: NamedPipeline,
  store: OwnedStore,
  journal: Journal,
  { groups, without, files, entries, blobs }: Change,
  options: ChangeOptions,
): Promise<readonly SealedShard[]> {
  const writing = writingOf(store, pipeline, journal.state.schemas, options)
  const numbers = new FreeNumbers(journal.state)
  const shards: SwapEntry['shards'][number][] = []
  for (const { of, isEmptied } of groups) {
    if (options.stop.aborted) throw stopped(UNCHANGED)
    options.onShard?.(shards.length + 1, groups.length)
    const { path, schema = 0 } = of[0]!
    const identity = (): ReturnType<FreeNumbers['take']> => numbers.take(splitPath(path)[0], schema)
    const by = isEmptied ? null : await rewriteShards(store, pipeline, of, identity(), writing, without)
    // A table that has all rows of these needs no others.
    const isSame = by !== null && without === null
    shards.push({
      of: of.map(({ shard }) => shard),
      by: isSame ? { ...by, stands_for: standsFor(of) } : by,
    })
  }
  await writeFiles(store, files)
  const swapped: readonly JournalEntry[] = shards.length === 0 ? [] : [{ kind: 'swap', shards }]
  if (swapped.length + entries.length > 0) await journal.commit([...swapped, ...entries], blobs)
  return shards.flatMap(({ by }) => by ?? [])
}

export async function writeFiles(store: OwnedStore, files: Change['files']): Promise<void> {
  for (const file of files) await store.replace(...file)
}
