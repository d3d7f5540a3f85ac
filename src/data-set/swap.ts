import { type NamedPipeline, type OwnedStore, ROW_FOLDERS, type Store } from '../core/index.ts'
import type { RowValue } from '../rows/index.ts'
import {
  type CheckpointState,
  type Journal,
  type JournalEntry,
  MANIFEST_PATH,
  readBlob,
  type SealedShard,
  type SwapEntry,
  splitPath,
} from '../state/index.ts'
import { admit, type ChangeOptions, holdToChange } from './hold.ts'
import { readState } from './open/find-state.ts'
import { namingLocations, openStore } from './open-store.ts'
import { FreeNumbers, type Located, rewriteShards, standsFor, writingOf } from './rewriting.ts'
import { settle, stopped, UNCHANGED } from './settle/settle.ts'

export type Swap<Result> = {
  readonly result: Result
  /** Shards that go, each group of which comes as one. */
  readonly groups: readonly Group[]
  /** Whether a row does not come, by its `identity_name`; null: all come. */
  readonly isLeftOut: ((identity: RowValue) => boolean) | null
  /** What is written first; its former content is not needed if the commit does not follow. */
  readonly files: readonly Parameters<OwnedStore['replace']>[]
  readonly entries: readonly JournalEntry[]
  readonly blobs: readonly Uint8Array[]
}

type Group = {
  readonly of: readonly Located[]
  /** Whether no row is left of it, and no shard comes. */
  readonly isEmptied: boolean
}

export function noSwap<Result>(result: Result): Swap<Result> {
  return { result, groups: [], isLeftOut: null, files: [], entries: [], blobs: [] }
}

type Command<Result> = {
  /** Changes nothing. @param state null: nothing is exported yet */
  readonly plan: (
    state: CheckpointState | null,
    store: Store,
    log: Pick<Journal, 'read'>,
  ) => Swap<Result> | Promise<Swap<Result>>
  /** Numbers of shards that go as they are, and need not be whole. Default: none. */
  readonly goes?: (state: CheckpointState) => readonly number[]
  readonly done?: (result: Result, came: readonly SealedShard[]) => Result
}

/**
 * What comes is written first, then one commit puts it in its places: a crash before that has no effect.
 * @throws ExportError `locked` when a run holds the data set, `config` when it is another's, or tables could not follow
 */
export function swapShards<Result>(
  pipeline: NamedPipeline,
  options: ChangeOptions,
  { plan, goes = () => [], done }: Command<Result>,
): Promise<Result> {
  return namingLocations(pipeline, async () => {
    const store = openStore(pipeline)
    const { dryRun = false } = options
    if (dryRun || !(await isThere(store))) {
      const state = await readState(store)
      await admit('change', { pipeline, store, state, options })
      const { result, files } = await plan(state, store, { read: (ref) => readBlob(store, ref) })
      // The lock would create the folder.
      if (dryRun || files.length === 0) return result
    }
    return holdToChange(pipeline, options, goes, async ({ store, journal, catalog }) => {
      if (journal === null) {
        const { result, files } = await plan(null, store, { read: async () => null })
        await writeFiles(store, files)
        return result
      }
      const swap = await plan(journal.state, store, journal)
      const came = await apply(pipeline, store, journal, swap, options)
      await settle(pipeline, store, journal, { ...options, catalog })
      return done?.(swap.result, came) ?? swap.result
    })
  })
}

async function isThere(store: Store): Promise<boolean> {
  const names = new Set(await store.list(''))
  return ['_state', MANIFEST_PATH, ...ROW_FOLDERS].some((name) => names.has(name))
}

async function apply(
  pipeline: NamedPipeline,
  store: OwnedStore,
  journal: Journal,
  { groups, isLeftOut, files, entries, blobs }: Swap<unknown>,
  options: ChangeOptions,
): Promise<readonly SealedShard[]> {
  const writing = writingOf(store, pipeline, journal.state.schemas, options)
  const numbers = new FreeNumbers(journal.state)
  const shards: SwapEntry['shards'][number][] = []
  for (const { of, isEmptied } of groups) {
    if (options.stop.aborted) throw stopped(UNCHANGED)
    options.onShard?.(shards.length + 1, groups.length)
    const all = of.map(({ shard }) => shard)
    const [folder] = splitPath(all[0]!.path)
    const by = isEmptied
      ? null
      : await rewriteShards(
          store,
          pipeline,
          of,
          numbers.take(folder, all[0]!.schema ?? 0),
          writing,
          isLeftOut,
        )
    // A table that has all rows of these needs no others.
    const isSame = by !== null && isLeftOut === null
    shards.push({
      of: all.map(({ shard }) => shard),
      by: isSame ? { ...by, stands_for: standsFor(all) } : by,
    })
  }
  await writeFiles(store, files)
  const swapped: readonly JournalEntry[] = shards.length === 0 ? [] : [{ kind: 'swap', shards }]
  if (swapped.length + entries.length > 0) await journal.commit([...swapped, ...entries], blobs)
  return shards.flatMap(({ by }) => by ?? [])
}

async function writeFiles(store: OwnedStore, files: Swap<unknown>['files']): Promise<void> {
  for (const file of files) await store.replace(...file)
}
