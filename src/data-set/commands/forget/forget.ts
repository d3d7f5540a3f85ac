import {
  ExportError,
  IDENTITY_POLICIES,
  identityIn,
  locationOf,
  type NamedPipeline,
  type OwnedStore,
  type Pipeline,
  queryLabel,
  type Store,
} from '../../../core/index.ts'
import { ORPHANS, QUARANTINE_FOLDER, quarantinePath, ShardSet } from '../../../load/index.ts'
import {
  type CheckpointState,
  type ForgetEntry,
  type Journal,
  type JournalEntry,
  newSuppression,
  readSuppression,
  splitPath,
  suppressionEntry,
  suppressionFileOf,
  withDigests,
} from '../../../state/index.ts'
import type { ChangeOptions } from '../../hold.ts'
import { namingLocations } from '../../open-store.ts'
import { namePipeline } from '../../queries.ts'
import { writingOf } from '../../rewriting.ts'
import { shardSetOptions } from '../../shard-set-options.ts'
import { noSwap, type Swap, swapShards } from '../../swap.ts'
import { sweepTemporaryFolders } from '../warehouse/local-shards.ts'
import { People } from './people.ts'
import { otherItems } from './rejected-items.ts'
import { type OpenShardOfPeople, openOf, type ShardOfPeople, type Survey, survey } from './survey.ts'

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
 * @throws ExportError `config` when nobody can be found in it, or the mask key is another one; as `swapShards`
 */
export function forgetPeople(
  given: Pipeline,
  identities: readonly string[],
  options: ChangeOptions,
): Promise<ForgetResult> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    const people = People.of(identities, pipeline, options.maskKey)
    const copies = options.dryRun === true ? [] : await sweepTemporaryFolders()
    const result = await swapShards(pipeline, options, {
      plan: (state, store, log) => forgetting(pipeline, state, store, log, people, options),
      prepare: async (journal, store) => {
        const open = await openOf(journal, pipeline, journal.state, people)
        // From here on they are sealed shards like others.
        if (open.length > 0) await sealShards(pipeline, store, journal, open, options)
      },
    })
    if (copies.length === 0) return result
    const note = `Commands that run, or ran on other machines, have temporary folders, which may hold rows of theirs until the commands end: ${copies.join(', ')}.`
    return { ...result, notes: [...result.notes, note] }
  })
}

async function forgetting(
  pipeline: NamedPipeline,
  state: CheckpointState | null,
  store: Store,
  log: Pick<Journal, 'read'>,
  people: People,
  options: ChangeOptions,
): Promise<Swap<ForgetResult>> {
  const given = (await readSuppression(store, state)) ?? newSuppression()
  const list = withDigests(given, people.digests(given.key))
  const isLonger = list !== given
  if (state === null) {
    const result = { pipeline: pipeline.name, identities: people.count, rows: 0, shards: 0, quarantined: 0 }
    const note = `Nothing is exported in ${pipeline.load.path} yet; what is exported there from now on leaves them out.`
    return {
      ...noSwap({ ...result, notes: [note, ...people.hints()] }),
      files: isLonger ? [suppressionFileOf(list)] : [],
    }
  }
  const found = await survey(store, log, pipeline, state, people, options)
  const result = await resultOf(pipeline, store, state, people, found)
  const { partitions, ...items } = otherItems(found.items)
  const entries: JournalEntry[] = []
  if (result.rows > 0 || found.items.length > 0) {
    const at = new Date(options.clock.now()).toISOString()
    const { identities, rows, shards, quarantined } = result
    const changes = { partitions: [...countsOf(found.shards), ...partitions], rejected: items.rejected }
    entries.push({ kind: 'forget', at, identities, rows, shards, quarantined, changes })
  }
  if (isLonger) entries.push(suppressionEntry(list))
  return {
    result,
    groups: groupsOf(state, found.shards),
    isLeftOut: (identity) => people.has(identity),
    // The key comes first: digests without it are those of nobody.
    files: [...items.files, ...(isLonger ? [suppressionFileOf(given)] : [])],
    entries,
    blobs: items.blobs,
  }
}

/** The last shard of a data set stays, without rows: readers get the columns from it. */
function groupsOf(state: CheckpointState, shards: readonly ShardOfPeople[]): Swap<ForgetResult>['groups'] {
  let left = state.shards.length
  return shards.map((each) => {
    const { shard } = each
    const isAgain = state.redo.sealed.has(shard.shard)
    const isEmptied = each.removed.total === shard.rows && (isAgain || left > 1)
    if (isEmptied && !isAgain) left--
    return { of: [each], isEmptied }
  })
}

function countsOf(shards: readonly ShardOfPeople[]): NonNullable<ForgetEntry['changes']>['partitions'] {
  return shards.flatMap(({ removed, isFormer }) =>
    [...removed.counts].map(([partition, rows]) => ({
      partition,
      rows,
      quarantined: 0,
      ...(isFormer ? ({ former: true } as const) : {}),
    })),
  )
}

async function sealShards(
  pipeline: NamedPipeline,
  store: OwnedStore,
  journal: Journal,
  open: readonly OpenShardOfPeople[],
  { onLog, ...options }: ChangeOptions,
): Promise<void> {
  const { write } = writingOf(store, pipeline, journal.state.schemas, options)
  const folded = open.map(({ shard }) => shard)
  const opened = await ShardSet.open(shardSetOptions(pipeline, store, write, journal, { onLog }), folded)
  if ('lost' in opened)
    throw new ExportError({
      kind: 'damaged',
      what: 'Rows that wait in the log are lost or changed',
      where: '_state/log',
      next: 'Run the pipeline first: it exports them anew. Then `forget` again.',
    })
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
  return {
    pipeline: pipeline.name,
    identities: people.count,
    rows: found.rows,
    shards: found.shards.length + found.open.length,
    quarantined: found.quarantined,
    notes: [
      ...people.hints(),
      ...queriesOfPeople(pipeline, state, people, found),
      ...(await unread(store, state)),
    ],
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
export function queriesOfPeople(
  pipeline: NamedPipeline,
  state: CheckpointState,
  people: People,
  { queries: found }: Pick<Survey, 'queries'>,
): readonly string[] {
  const { extract, transform } = pipeline
  const queries = [...extract.queries, ...(extract.unfiltered?.queries ?? [])]
  const where = locationOf(pipeline, 'extract.queries')
  const notes: string[] = []
  const isNamed = queries.some((query) => namesOneOf(people, query.type, queryLabel(query)))
  const isRetired =
    IDENTITY_POLICIES[transform.identity].shows &&
    [...state.partitions.branches.keys()].some((name) => isOf(people, name))
  if (isNamed || isRetired) {
    notes.push(
      `A query names one of them (${isNamed ? where : 'one that the file no longer has'}): its value stays in folders, keys, manifest and query_value. Take it out of the file, export to another load.path with as: for such queries, and delete this data set.`,
    )
  }
  if ([...found].some((name) => name.startsWith('secret.'))) {
    notes.push(
      `Rows of them were found by a query for a secret (${where}): the secret may be theirs. If it is, take the query out of the file and its variable out of the environment.`,
    )
  }
  return notes
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
