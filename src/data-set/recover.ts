import {
  ExportError,
  type HeaderEntry,
  type JournalEntry,
  type Log,
  numberOf,
  type OwnedStore,
  type StatCheck,
  type Store,
  sideBySide,
} from '../core/index.ts'
import { moveUnknownShards, partOf, sealedPath } from '../load/index.ts'
import {
  beginCheckpoint,
  type CheckpointState,
  findCheckpoint,
  OpenLog,
  readCheckpoint,
  type SealedShard,
  splitPath,
} from '../state/index.ts'
import { publishLeft, removeSealed } from './publish.ts'

/**
 * Gets the checkpoint (null: none) before anything is changed, and throws to refuse it.
 * @returns a change that comes before shards are checked, such as one that replaces them
 */
export type Accept = (found: CheckpointState | null) => Promise<readonly JournalEntry[]>

/**
 * Opens a checkpoint, or begins one, claims it from a former owner that may still run, and publishes what a crash left
 * sealed. Every change to a data set comes this way.
 */
async function openCheckpoint(
  { store, forced }: Owner,
  header: HeaderEntry,
  accept: Accept,
  onShard?: (shard: SealedShard) => void,
  check?: (state: CheckpointState) => Promise<void>,
): Promise<OpenLog> {
  for (;;) {
    const found = await findCheckpoint(store, onShard)
    const change = await accept(found?.fold.state ?? null)
    if (found === null) {
      await beginCheckpoint(store, header)
      continue
    }
    const checkpoint = new OpenLog(store, found)
    // A late commit of the former owner: everything is read again, and that owner cannot commit any more.
    if (forced && !(await checkpoint.claim())) continue
    await publishLeft(store, checkpoint.state, async () => check?.(checkpoint.state))
    await checkpoint.append(change)
    return checkpoint
  }
}

const acceptAll: Accept = async () => []

/** Opens the checkpoint of a data set whose shards need not be whole. */
export async function openUnchecked(owner: Owner, header: HeaderEntry): Promise<OpenLog> {
  const checkpoint = await openCheckpoint(owner, header, acceptAll)
  await checkpoint.sweep()
  return checkpoint
}

/**
 * Opens a checkpoint, or begins one, and brings the data set in line with it: checks that every finished shard has its
 * full length, and removes what is not committed.
 * @throws ExportError `damaged` when a shard is missing or short
 */
export async function openSettledCheckpoint(
  owner: Owner,
  header: HeaderEntry,
  log: Log,
  accept: Accept = acceptAll,
): Promise<OpenLog> {
  const { store } = owner
  const stats = store.statCheck()
  try {
    const checkpoint = await openCheckpoint(owner, header, accept, statEach(stats), (state) =>
      requireWhole(store, state),
    )
    await recoverShards(store, checkpoint.state, stats, log)
    await checkpoint.sweep()
    return checkpoint
  } finally {
    await stats.close()
  }
}

/** What is refused stays as it is, so this comes before anything is published. @throws ExportError `damaged` */
async function requireWhole(store: Store, state: CheckpointState): Promise<void> {
  const stats = store.statCheck()
  try {
    for (const shard of state.shards) statEach(stats)(shard)
    await unsettledShards(store, state, stats)
  } finally {
    await stats.close()
  }
}

/** The store of the owner of a data set. */
export type Owner = {
  readonly store: OwnedStore
  /** Whether it took over from an owner that may still run. */
  readonly forced: boolean
}

/**
 * Reads a checkpoint with the checks of {@link openSettledCheckpoint}, but changes nothing. Works also during a run.
 */
export async function readSettledCheckpoint(
  store: Store,
  requireFit: (found: CheckpointState | null) => void,
): Promise<CheckpointState | null> {
  const stats = store.statCheck()
  try {
    const found = await readCheckpoint(store, statEach(stats))
    requireFit(found)
    if (found !== null) await unsettledShards(store, found, stats)
    return found
  } finally {
    await stats.close()
  }
}

function statEach(stats: StatCheck): (shard: SealedShard) => void {
  return ({ path, bytes }) => {
    stats.add({ path, bytes })
    // With many folders, most hold one shard: this can be checked before the whole checkpoint is read.
    const [folder, name] = splitPath(path)
    if (partOf(name) === 0) stats.add({ path: folder, names: 1 })
  }
}

async function recoverShards(
  store: OwnedStore,
  state: CheckpointState,
  stats: StatCheck,
  log: Log,
): Promise<void> {
  const { unpublished, folders, known } = await unsettledShards(store, state, stats)
  // Readers take what is published for whole.
  if (unpublished.length > 0) throw damaged(unpublished[0]!, null)
  await removeSealed(store, state)
  const warn = (message: string): void => log('warn', message)
  await sideBySide(folders, (folder) => moveUnknownShards(store, folder, (path) => known.has(path), warn))
}

/**
 * Finds differences between the data set and the checkpoint.
 * @param stats has been given every finished shard, and every folder with one shard
 * @returns the finished shards without their final names, the folders that hold other files than their shards, and the
 *   paths of the shards in these folders
 * @throws ExportError `damaged` when a shard is missing or short
 */
async function unsettledShards(store: Store, state: CheckpointState, stats: StatCheck) {
  // Neither open nor held shards are in their folders.
  const absent = new Map(state.goneFrom)
  const folders = [
    ...[...state.openShards.values()].map(({ folder }) => folder),
    ...[...state.held.values()].map(({ path }) => splitPath(path)[0]),
  ]
  for (const folder of folders) absent.set(folder, (absent.get(folder) ?? 0) + 1)
  const finished = (folder: string): number => (state.partsOf.get(folder) ?? 0) - (absent.get(folder) ?? 0)
  for (const [folder, parts] of state.partsOf) {
    if (parts === 0) continue
    if (finished(folder) !== 1 || state.goneFrom.has(folder))
      stats.add({ path: folder, names: finished(folder) })
  }
  const odd = new Set<string>()
  for (const stat of await stats.mismatches()) {
    if ('bytes' in stat || stat.names === finished(stat.path)) odd.add(stat.path)
  }
  const known = new Set<string>()
  if (odd.size === 0) return { unpublished: [], folders: [], known }
  // They are removed once the manifest does not list them any more.
  for (const path of state.invalidated) known.add(path)
  const shards: SealedShard[] = []
  for (const sealed of state.shards) {
    const [folder] = splitPath(sealed.path)
    // A damaged shard stays until its partitions are exported again.
    if (odd.has(sealed.path) && !state.redo.shards.has(sealed.shard)) shards.push(sealed)
    if (odd.has(folder)) known.add(sealed.path)
  }
  const unpublished: SealedShard[] = []
  await sideBySide(shards, async (sealed) => {
    const { path, bytes } = sealed
    const size = await store.size(path)
    if (size === bytes) return
    if (size === null && (await isSealed(store, sealed))) unpublished.push(sealed)
    // A run may have published it between the two stats.
    else if (size !== null || (await store.size(path)) !== bytes) throw damaged(sealed, size)
  })
  return {
    unpublished,
    folders: [...state.partsOf].map(([folder]) => folder).filter((folder) => odd.has(folder)),
    known,
  }
}

/** Whether a sealed shard waits to be published. */
async function isSealed(store: Store, { shard, sha256, bytes }: SealedShard): Promise<boolean> {
  return (await store.size(sealedPath(shard, sha256))) === bytes
}

function damaged({ path, bytes, rows, partitions }: SealedShard, size: number | null): ExportError {
  const anew =
    rows === 0
      ? '`verify --fix`'
      : `\`run --redo ${partitions[0]}\`, or \`verify --fix\` for all that is damaged`
  return new ExportError({
    kind: 'damaged',
    what:
      size === null
        ? 'A finished shard is missing'
        : `A finished shard holds ${numberOf(size, 'byte')} instead of ${bytes}`,
    where: path,
    next: `Restore it${rows === 0 ? '' : ' (it holds rows that are paid for)'}, or export it anew: ${anew}; nothing was changed.`,
  })
}
