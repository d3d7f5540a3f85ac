import {
  IDENTITY_POLICIES,
  identityIn,
  locationOf,
  type NamedPipeline,
  queryLabel,
  type Store,
} from '../../../core/index.ts'
import { ORPHANS, QUARANTINE_FOLDER, quarantinePath } from '../../../load/index.ts'
import {
  type CheckpointState,
  checkMaskKey,
  type ForgetEntry,
  type JournalEntry,
  newSuppression,
  readSuppression,
  splitPath,
  suppressionEntry,
  suppressionFileOf,
  sweepTemporaryFolders,
  withDigests,
} from '../../../state/index.ts'
import { type Change, NO_CHANGE } from '../../change.ts'
import type { ChangeOptions } from '../../options.ts'
import type { ChangedDataSet, WritableDataSet } from '../../writable-data-set.ts'
import { People } from './people.ts'
import { type ShardOfPeople, type Survey, survey } from './survey.ts'

export type ForgetResult = {
  readonly pipeline: string
  /** Different identities that were given, without lines that are none. */
  readonly identities: number
  readonly rows: number
  readonly shards: number
  readonly quarantined: number
  /** What stays of them, and the way out. */
  readonly notes: readonly string[]
}

/**
 * One commit replaces shards and rejected items, and keeps the people out: nobody is kept out whose rows stay.
 * @throws ExportError `config` when nobody can be found in it, or the mask key is another one; as {@link WritableDataSet.change}
 */
export async function forgetPeople(
  dataSet: WritableDataSet,
  identities: readonly string[],
  options: ChangeOptions,
): Promise<ForgetResult> {
  const people = await dataSet.named(async () => People.of(identities, dataSet.pipeline, options.maskKey))
  const copies = options.dryRun === true ? [] : await sweepTemporaryFolders()
  const { result } = await dataSet.change(options, (at) => forgetting(at, people, options))
  if (copies.length === 0) return result
  const note = `Commands that run, or ran on other machines, have temporary folders, which may hold rows of theirs until the commands end: ${copies.join(', ')}.`
  return { ...result, notes: [...result.notes, note] }
}

async function forgetting(
  at: ChangedDataSet,
  people: People,
  options: ChangeOptions,
): Promise<Change<ForgetResult>> {
  const { pipeline, store, state } = at
  checkMaskKey(state?.header, options.maskKey, pipeline)
  const given = (await readSuppression(store, state)) ?? newSuppression()
  const list = withDigests(given, people.digests(given.key))
  const isLonger = list !== given
  if (state === null) {
    const note = `Nothing is exported in ${pipeline.load.path} yet; what is exported there from now on leaves them out.`
    const counts = { identities: people.count, rows: 0, shards: 0, quarantined: 0 }
    return {
      ...NO_CHANGE,
      result: { pipeline: pipeline.name, ...counts, notes: [note, ...people.hints()] },
      files: isLonger ? [suppressionFileOf(list)] : [],
    }
  }
  const found = await survey(at, state, people, options)
  const { shards, open, items } = found
  const counts = {
    identities: people.count,
    rows: [...shards, ...open].reduce((sum, { removed }) => sum + removed.total, 0),
    shards: shards.length + open.length,
    quarantined: items.reduce((sum, { removed }) => sum + removed, 0),
  }
  const notes = [
    ...people.hints(),
    ...queriesOfPeople(pipeline, state, people, found),
    ...(await unread(store, state)),
  ]
  const entries: JournalEntry[] = []
  const blobs: Uint8Array[] = []
  if (counts.rows + counts.quarantined > 0) {
    const at = new Date(options.clock.now()).toISOString()
    entries.push({ kind: 'forget', at, ...counts, changes: changesOf(state, found, blobs) })
  }
  if (isLonger) entries.push(suppressionEntry(list))
  return {
    result: { pipeline: pipeline.name, ...counts, notes },
    groups: groupsOf(state, shards),
    without: people,
    // The key comes first: digests without it are those of nobody.
    files: isLonger ? [suppressionFileOf(given)] : [],
    entries,
    blobs,
  }
}

/** The last shard of a data set stays, without rows: readers get the columns from it. */
function groupsOf(state: CheckpointState, shards: readonly ShardOfPeople[]): Change['groups'] {
  let left = state.shards.length
  return shards.map(({ shard, removed }) => {
    const isEmptied = removed.total === shard.rows && left > 1
    if (isEmptied) left--
    return { of: [shard], isEmptied }
  })
}

/** Rows of sealed shards go with the `swap`, those that wait in the log, and items, with this. @param blobs gets bytes */
function changesOf(
  { redo }: CheckpointState,
  { shards, open, items }: Survey,
  blobs: Uint8Array[],
): NonNullable<ForgetEntry['changes']> {
  const add = (bytes: Uint8Array): number => blobs.push(bytes) - 1
  const only = (isRedo: boolean) => (isRedo ? { redo: true as const } : {})
  const counts = ({ removed }: Pick<ShardOfPeople, 'removed'>, isRedo: (key: string) => boolean) =>
    Array.from(removed.counts, ([partition, rows]) => ({
      ...{ partition, rows, quarantined: 0 },
      ...only(isRedo(partition)),
    }))
  return {
    partitions: [
      ...shards.flatMap((each) => counts(each, () => false)),
      ...open.flatMap((each) => counts(each, (key) => redo.partitions.has(key))),
      ...items.map(({ partition, removed, isRedo }) => ({
        ...{ partition, rows: 0, quarantined: removed },
        ...only(isRedo),
      })),
    ],
    rejected: items.map(({ partition, lines, isRedo }) => ({ partition, blob: add(lines), ...only(isRedo) })),
    rewritten: open.map(({ shard: { shard }, importedAt, left }) => ({
      ...{ shard, imported_at: importedAt },
      batches: left.map(({ bytes, ...each }) => ({ ...each, blob: add(bytes) })),
    })),
  }
}

async function unread(store: Store, state: CheckpointState): Promise<readonly string[]> {
  const known = new Set([...state.partitions].map(([key]) => splitPath(quarantinePath(key))[1]))
  const unexpected = (await store.list(QUARANTINE_FOLDER)).filter((name) => !known.has(name))
  const orphans = await store.list(ORPHANS)
  const folders = [unexpected.length > 0 && QUARANTINE_FOLDER, orphans.length > 0 && ORPHANS].filter(Boolean)
  if (folders.length === 0) return []
  return [
    `Files that are not part of the data set lie in ${folders.join(' and ')}. They were not read: delete them if they may hold rows of theirs.`,
  ]
}

/** Queries keep their values when rows go: in the file, folders, keys, manifest and the column `query_value`. */
function queriesOfPeople(
  pipeline: NamedPipeline,
  state: CheckpointState,
  people: People,
  { shards, open }: Survey,
): readonly string[] {
  const { extract, transform } = pipeline
  const queries = [...extract.queries, ...(extract.unfiltered?.queries ?? [])]
  const where = locationOf(pipeline, 'extract.queries')
  const isNamed = queries.some((query) => namesOneOf(people, query.type, queryLabel(query)))
  const isRetired =
    IDENTITY_POLICIES[transform.identity].shows &&
    [...state.partitions.branches.keys()].some((name) => isOf(people, name))
  const isBySecret = [...shards, ...open].some(({ removed }) =>
    [...removed.counts.keys()].some((key) => key.startsWith('secret.')),
  )
  return [
    ...(isNamed || isRetired
      ? [
          `A query names one of them (${isNamed ? where : 'one that the file no longer has'}): its value stays in folders, keys, manifest and query_value. Take it out of the file, export to another load.path with as: for such queries, and delete this data set.`,
        ]
      : []),
    ...(isBySecret
      ? [
          `Rows of them were found by a query for a secret (${where}): the secret may be theirs. If it is, take the query out of the file and its variable out of the environment.`,
        ]
      : []),
  ]
}

/** Whether the name of a query, as in folders, names one of them. */
function isOf(people: People, name: string): boolean {
  const [type, ...rest] = name.split('.')
  return namesOneOf(people, type!, decodeURIComponent(rest.join('.')))
}

function namesOneOf(people: People, type: string, value: string): boolean {
  const identity = identityIn(type)
  return identity !== 'none' && people.isNamedBy(value, identity === 'part')
}
