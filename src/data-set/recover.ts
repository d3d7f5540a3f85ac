import { type ExpectedStat, ExportError, type Log, numberOf, type Store, sideBySide } from '../core/index.ts'
import { changedSinceSealed, moveUnknownShards, sealedPath } from '../load/index.ts'
import type { HeaderEntry, JournalEntry } from '../state/index.ts'
import {
  beginCheckpoint,
  type CheckpointState,
  headerOfManifest,
  Journal,
  type Lock,
  type SealedShard,
  splitPath,
} from '../state/index.ts'
import { findState, readState, requirePeopleOf } from './find-state.ts'
import { publishLeft, removeSealed } from './publish.ts'
import { restore } from './restore.ts'

/**
 * Gets the checkpoint (null: none) before anything is changed, and throws to refuse it.
 * @returns a change that comes before shards are checked, such as one that replaces them
 */
export type Accept = (found: CheckpointState | null) => Promise<readonly JournalEntry[]>

/**
 * Opens a checkpoint, or begins one, claims it, and publishes what a crash left sealed. Every change to a data set comes
 * this way.
 * @param check is called before anything is changed, with the numbers of the shards that the change replaces
 */
async function openJournal(
  { store }: Owner,
  header: HeaderEntry,
  accept: Accept,
  check?: (state: CheckpointState, replaced: ReadonlySet<number>) => Promise<void>,
): Promise<Journal> {
  for (;;) {
    const { found, manifest, state: before } = await findState(store)
    const change = await accept(before)
    if (manifest !== null) await requirePeopleOf(store, manifest)
    if (found === null) {
      await beginCheckpoint(store, manifest === null ? header : headerOfManifest(manifest))
      continue
    }
    const journal = await Journal.open(store, found)
    if (journal === null) continue
    try {
      if (manifest !== null) await restore(store, journal, manifest)
      const { state } = journal
      const replaced = new Set([...state.redo.shards, ...change.flatMap(shardsOf)])
      await check?.(state, replaced)
      const { changed } = await publishLeft(store, state)
      const lost = changed.find(({ shard }) => !replaced.has(shard))
      // Readers take what is published for whole.
      if (check !== undefined && lost !== undefined) throw changedSinceSealed(lost)
      await journal.append(change)
      return journal
    } catch (error) {
      await journal.refuse()
      throw error
    }
  }
}

function shardsOf(entry: JournalEntry): readonly number[] {
  return entry.kind === 'redo' ? entry.shards : []
}

const acceptAll: Accept = async () => []

/** Opens the checkpoint of a data set whose shards need not be whole. */
export async function openUnchecked(owner: Owner, header: HeaderEntry): Promise<Journal> {
  const journal = await openJournal(owner, header, acceptAll)
  await journal.sweep()
  return journal
}

/**
 * Opens a checkpoint, or begins one, and brings the data set in line with it: checks that every sealed shard has its
 * full length, and removes what is not committed.
 * @throws ExportError `damaged` when a shard is missing or short; nothing is changed then
 */
export async function openChecked(
  owner: Owner,
  header: HeaderEntry,
  log: Log,
  accept: Accept = acceptAll,
): Promise<Journal> {
  const { store } = owner
  let odd: Odd = NOTHING_ODD
  const journal = await openJournal(owner, header, accept, async (state, replaced) => {
    odd = await requireWhole(store, state, replaced)
  })
  await removeSealed(store, journal.state)
  const warn = (message: string): void => log('warn', message)
  await sideBySide(odd.folders, (folder) =>
    moveUnknownShards(store, folder, (path) => odd.known.has(path), warn),
  )
  await journal.sweep()
  return journal
}

/** The store of the owner of a data set. */
export type Owner = Pick<Lock, 'store'>

/**
 * Reads a checkpoint with the checks of {@link openChecked}, but changes nothing. Works also during a run.
 */
export async function readChecked(
  store: Store,
  requireFit: (found: CheckpointState | null) => Promise<void>,
): Promise<CheckpointState | null> {
  const found = await readState(store)
  await requireFit(found)
  if (found !== null) await requireWhole(store, found, found.redo.shards)
  return found
}

/** Folders that hold other files than their shards, and the paths of the shards in them. */
type Odd = { readonly folders: readonly string[]; readonly known: ReadonlySet<string> }

const NOTHING_ODD: Odd = { folders: [], known: new Set() }

/**
 * @param replaced numbers of shards that need not be whole
 * @throws ExportError `damaged` when a shard is missing or short
 */
async function requireWhole(
  store: Store,
  state: CheckpointState,
  replaced: ReadonlySet<number>,
): Promise<Odd> {
  // Neither open nor held shards are in their folders.
  const absent = new Map(state.goneFrom)
  const folders = [
    ...[...state.openShards.values()].map(({ folder }) => folder),
    ...[...state.held.values()].map(({ path }) => splitPath(path)[0]),
  ]
  for (const folder of folders) absent.set(folder, (absent.get(folder) ?? 0) + 1)
  const present = (folder: string): number => (state.partsOf.get(folder) ?? 0) - (absent.get(folder) ?? 0)
  const expected = function* (): Generator<ExpectedStat> {
    for (const { path, bytes } of state.shards) yield { path, bytes }
    for (const [folder, parts] of state.partsOf) if (parts > 0) yield { path: folder, names: present(folder) }
  }
  const odd = new Set((await store.mismatches(expected())).map(({ path }) => path))
  if (odd.size === 0) return NOTHING_ODD
  // Another file may be there in place of one that is not.
  for (const { path } of state.shards) if (odd.has(path)) odd.add(splitPath(path)[0])
  // They are removed once the manifest does not list them any more.
  const known = new Set(state.invalidated)
  const shards: SealedShard[] = []
  for (const sealed of state.shards) {
    const [folder] = splitPath(sealed.path)
    // A damaged shard stays until its partitions are exported again.
    if (odd.has(sealed.path) && !replaced.has(sealed.shard)) shards.push(sealed)
    if (odd.has(folder)) known.add(sealed.path)
  }
  await sideBySide(shards, async (sealed) => {
    const { path, bytes } = sealed
    const size = await store.size(path)
    if (size === bytes || (size === null && (await isSealed(store, sealed)))) return
    // A run may have published it between the two stats.
    if (size !== null || (await store.size(path)) !== bytes) throw damaged(sealed, size)
  })
  return { folders: [...state.partsOf].map(([folder]) => folder).filter((folder) => odd.has(folder)), known }
}

/** Whether a sealed shard waits to be published. */
async function isSealed(store: Store, { shard, sha256, bytes }: SealedShard): Promise<boolean> {
  return (await store.size(sealedPath(shard, sha256))) === bytes
}

function damaged({ path, bytes, partitions }: SealedShard, size: number | null): ExportError {
  return new ExportError({
    kind: 'damaged',
    what:
      size === null ? 'A shard is missing' : `A shard holds ${numberOf(size, 'byte')} instead of ${bytes}`,
    where: path,
    next: `Restore it (it holds rows that are paid for), or export it again: \`run --redo ${partitions[0]}\`; \`verify\` prints the command for all that is damaged. Nothing was changed.`,
  })
}
