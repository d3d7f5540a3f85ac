import { ExportError, type NamedPipeline, type Pipeline, type Store } from '../../core/index.ts'
import { ORPHANS, QUARANTINE_FOLDER, quarantinePath, ShardSet } from '../../load/index.ts'
import type { BlobRef, JournalEntry } from '../../state/index.ts'
import {
  type CheckpointState,
  checkMaskKey,
  type Journal,
  NEXT_SUPPRESSION_PATH,
  newList,
  readBlob,
  type StoredList,
  splitPath,
  withDigests,
  withKey,
} from '../../state/index.ts'
import { type ChangeOptions, changeDataSet, readChangeable } from '../change.ts'
import { namingLocations, openDataSet } from '../open-data-set.ts'
import { namePipeline } from '../queries.ts'
import type { Owner } from '../recover.ts'
import { coderOf } from '../rewriting.ts'
import { shardSetOptions } from '../shard-set-options.ts'
import { bringPeople, listOf, readLists, writePeople } from '../suppression.ts'
import { sweepTemporaryFolders } from '../warehouse/local-shards.ts'
import { queriesOfPeople } from './named-queries.ts'
import { People } from './people.ts'
import { forgetItems } from './rejected-items.ts'
import { countsOf, rewriteWithout } from './rewrite-shards.ts'
import { type OnShard, type OpenShardOfPeople, openOf, type Survey, survey } from './survey.ts'

export type ForgetResult = {
  readonly pipeline: string
  /** Different identities that were given, without lines that are none. */
  readonly identities: number
  readonly rows: number
  /** Sealed shards with rows of theirs. */
  readonly shards: number
  readonly quarantined: number
  /** What stays of them, and the way out. */
  readonly notes: readonly string[]
}

export type ForgetOptions = ChangeOptions & {
  /** Called before each shard that is read, and before each that is written anew. */
  readonly onShard: OnShard
}

/**
 * Reports what `forgetPeople` would remove; changes nothing. Works during a run.
 * @throws ExportError as that
 */
export function planForgetting(
  given: Pipeline,
  identities: readonly string[],
  options: ForgetOptions,
): Promise<ForgetResult> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    const people = People.of(identities, pipeline, options.maskKey)
    const store = openDataSet(pipeline)
    const state = await readChangeable(pipeline, store)
    checkMaskKey(state?.header, options.maskKey, pipeline)
    if (state === null) return nothingOf(pipeline, people)
    const log = { read: (ref: BlobRef) => readBlob(store, ref) }
    const found = await survey(store, log, pipeline, state, people, options)
    return resultOf(pipeline, store, state, people, found)
  })
}

/**
 * Takes people out of a data set, and keeps them out; before its first run, out of what that exports. What is left of
 * shards and rejected items is written first, then takes its place in one commit, with the list of people whom runs keep
 * out. Then the data set is settled. A crash before the commit has no effect.
 * @throws ExportError `config` when nobody can be found in it, or the mask key is another one; `locked` when a run holds
 *   the data set
 */
export function forgetPeople(
  given: Pipeline,
  identities: readonly string[],
  options: ForgetOptions,
): Promise<ForgetResult> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    const people = People.of(identities, pipeline, options.maskKey)
    const copies = await sweepTemporaryFolders()
    const result = await forget(pipeline, people, options)
    return copies.length === 0 ? result : { ...result, notes: [...result.notes, copiesOfOthers(copies)] }
  })
}

function copiesOfOthers(folders: readonly string[]): string {
  return `Commands that run, or ran on other machines, have temporary folders, which may hold rows of theirs until the commands end: ${folders.join(', ')}.`
}

/** Nothing is exported yet: the first run keeps these people out. */
function nothingOf(pipeline: Pipeline, people: People): ForgetResult {
  const { name } = pipeline
  const notes = people.hints()
  return { pipeline: name, identities: people.count, rows: 0, shards: 0, quarantined: 0, notes }
}

function forget(pipeline: NamedPipeline, people: People, options: ForgetOptions): Promise<ForgetResult> {
  const change = async (journal: Journal, owner: Owner): Promise<ForgetResult> => {
    await bringPeople(owner.store, journal.state)
    return remove(pipeline, owner, journal, people, options)
  }
  const begin = async ({ store }: Owner): Promise<ForgetResult> => {
    await writePeople(store, withPeople((await readLists(store)) ?? [], people, options))
    return nothingOf(pipeline, people)
  }
  return changeDataSet(pipeline, options, { change, begin })
}

/** The lists with the digests of people; the same array if they have them all. */
function withPeople(
  lists: readonly StoredList[],
  people: People,
  { maskKey }: ForgetOptions,
): readonly StoredList[] {
  // The first list that has a key at hand; lists under a former mask key stay.
  const at = lists.findIndex((list) => withKey(list, maskKey) !== null)
  const before = lists[at] ?? newList(maskKey)
  const after = withDigests(before, people.digests(withKey(before, maskKey)!.key))
  if (after === before) return lists
  return at < 0 ? [...lists, after] : lists.with(at, after)
}

/**
 * Writes what is left of the shards concerned, and the list of people with these, then commits that both take their
 * places: nobody is kept out whose rows stay, and the other way round.
 */
async function remove(
  pipeline: NamedPipeline,
  owner: Owner,
  journal: Journal,
  people: People,
  options: ForgetOptions,
): Promise<ForgetResult> {
  const { store } = owner
  const { state } = journal
  const given = (await readLists(store)) ?? []
  const lists = withPeople(given, people, options)
  const open = await openOf(journal, pipeline, state, people)
  // From here on they are sealed shards like others.
  if (open.length > 0) await sealShards(pipeline, owner, journal, open, options)
  const found = await survey(store, journal, pipeline, state, people, options)
  const result = await resultOf(pipeline, store, state, people, found)
  const { shards } = found
  const rewritten = await rewriteWithout(store, pipeline, state, shards, people, options)
  const items = await forgetItems(store, found.items)
  const entries: JournalEntry[] = []
  if (result.rows > 0 || found.items.length > 0) {
    const at = new Date(options.clock.now()).toISOString()
    const { rows, quarantined } = result
    const counts = { identities: people.count, rows, shards: result.shards, quarantined }
    const changes = {
      partitions: [...countsOf(shards), ...items.partitions],
      shards: rewritten,
      rejected: items.rejected,
    }
    entries.push({ kind: 'forget', at, ...counts, changes })
  }
  if (lists !== given) {
    await writePeople(store, lists, NEXT_SUPPRESSION_PATH)
    entries.push({ kind: 'people', list: listOf(lists)! })
  }
  if (entries.length > 0) await journal.commit(entries, items.blobs)
  return result
}

/** Seals open shards before they are full. */
async function sealShards(
  pipeline: NamedPipeline,
  owner: Owner,
  journal: Journal,
  open: readonly OpenShardOfPeople[],
  { onLog, ...options }: ForgetOptions,
): Promise<void> {
  const coding = { coder: await coderOf(pipeline, options) }
  const folded = open.map(({ shard }) => shard)
  const opened = await ShardSet.open(shardSetOptions(pipeline, owner, coding, journal, { onLog }), folded)
  if ('lost' in opened) throw lostRows()
  try {
    await opened.set.seal(opened.set.openFolders)
  } finally {
    await opened.set.close()
  }
}

async function resultOf(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
  people: People,
  found: Survey,
): Promise<ForgetResult> {
  const { rows, quarantined } = found
  const notes = [
    ...people.hints(),
    ...queriesOfPeople(pipeline, state, people, found),
    ...(await unread(store, state)),
  ]
  return {
    pipeline: pipeline.name,
    identities: people.count,
    rows,
    shards: found.shards.length + found.open.length,
    quarantined,
    notes,
  }
}

/** Files that are not part of the data set, and are not read. */
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

function lostRows(): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'Rows that wait in the log are lost or changed',
    where: '_state/log',
    next: 'Run the pipeline first: it exports them anew. Then `forget` again.',
  })
}
