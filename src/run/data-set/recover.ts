import {
  ExportError,
  type HeaderEntry,
  numberOf,
  type StatCheck,
  type Store,
  sideBySide,
} from '../../core/index.ts'
import { moveUnknownShards, OPEN_FOLDER, openShardPath, partOf } from '../../load/index.ts'
import {
  type Checkpoint,
  type CheckpointState,
  openCheckpoint,
  readCheckpoint,
  type SealedShard,
  splitPath,
} from '../../state/index.ts'
import { removePrunedQuarantine } from './prune.ts'

/**
 * Opens a checkpoint, or begins one, and brings the data set in line with it: makes sure that every finished shard
 * is there at its full length, gives those their final names that a crash kept from it, and removes what is not
 * committed.
 * @param accept gets what was found (null: no checkpoint) before anything is touched; refuses it by throwing
 * @throws ExportError `damaged` when a shard is missing or short; nothing is changed then
 */
export async function openSettledCheckpoint(
  store: Store,
  header: HeaderEntry,
  accept: (found: CheckpointState | null) => void,
  warn: (message: string) => void,
): Promise<Checkpoint> {
  const looks = store.statCheck()
  const settle = async (found: CheckpointState | null): Promise<void> => {
    accept(found)
    if (found === null) return
    for (const path of found.invalidated) await store.remove(path)
    await removePrunedQuarantine(store, found)
    await settleShards(store, found, looks, warn)
  }
  try {
    return await openCheckpoint(store, header, settle, lookAt(looks))
  } finally {
    await looks.close()
  }
}

/**
 * Reads a checkpoint as {@link openSettledCheckpoint} would find it, and refuses what that refuses, but touches
 * nothing; also while a run is at work.
 */
export async function readSettledCheckpoint(
  store: Store,
  accept: (found: CheckpointState | null) => void,
): Promise<CheckpointState | null> {
  const looks = store.statCheck()
  try {
    const found = await readCheckpoint(store, lookAt(looks))
    accept(found)
    if (found !== null) await unsettledShards(store, found, looks)
    return found
  } finally {
    await looks.close()
  }
}

function lookAt(looks: StatCheck): (shard: SealedShard) => void {
  return ({ path, bytes }) => {
    looks.add({ path, bytes })
    // Most folders of many hold one shard: that they do need not wait until the checkpoint is read.
    const [folder, name] = splitPath(path)
    if (partOf(name) === 0) looks.add({ path: folder, names: 1 })
  }
}

async function settleShards(
  store: Store,
  state: CheckpointState,
  looks: StatCheck,
  warn: (message: string) => void,
): Promise<void> {
  const { unpublished, folders, known } = await unsettledShards(store, state, looks)
  for (const { shard, path } of unpublished) await store.publish(openShardPath(shard), path)
  await sideBySide(folders, (folder) => moveUnknownShards(store, folder, (path) => known.has(path), warn))
}

type Unsettled = {
  /** Finished shards that lack their final names. */
  readonly unpublished: readonly SealedShard[]
  /** Folders that hold something else than their shards. */
  readonly folders: readonly string[]
  /** Paths of the shards that belong into those. */
  readonly known: ReadonlySet<string>
}

/**
 * Finds where the data set is not as the checkpoint says.
 * @param looks has been given every finished shard, and every folder as if it had one
 * @throws ExportError `damaged` when a shard is missing or short
 */
async function unsettledShards(store: Store, state: CheckpointState, looks: StatCheck): Promise<Unsettled> {
  const open = new Map<string, number>()
  for (const { folder } of state.openShards.values()) open.set(folder, (open.get(folder) ?? 0) + 1)
  const finished = (folder: string): number => (state.partsOf.get(folder) ?? 0) - (open.get(folder) ?? 0)
  for (const [folder] of state.partsOf) {
    if (finished(folder) !== 1) looks.add({ path: folder, names: finished(folder) })
  }
  const odd = new Set<string>()
  for (const look of await looks.mismatches()) {
    if ('bytes' in look || look.names === finished(look.path)) odd.add(look.path)
  }
  const known = new Set<string>()
  if (odd.size === 0) return { unpublished: [], folders: [], known }
  const shards: SealedShard[] = []
  for (const sealed of state.shards) {
    const [folder] = splitPath(sealed.path)
    if (odd.has(sealed.path)) shards.push(sealed)
    if (odd.has(folder)) known.add(sealed.path)
  }
  const unpublished: SealedShard[] = []
  await sideBySide(shards, async (sealed) => {
    const { shard, path, bytes } = sealed
    const size = await store.size(path)
    if (size === bytes) return
    if (size === null && (await waits(store, shard, bytes))) unpublished.push(sealed)
    // A run that is at work may have given it its name between the two looks.
    else if (size !== null || (await store.size(path)) !== bytes) throw damaged(sealed, size)
  })
  const folders = [...state.partsOf].map(([folder]) => folder).filter((folder) => odd.has(folder))
  return { unpublished, folders, known }
}

/** Whether a whole shard is about to get its name, also from a run that is at work in a folder of its own. */
async function waits(store: Store, shard: number, bytes: number): Promise<boolean> {
  if ((await store.size(openShardPath(shard))) === bytes) return true
  const [state, open] = splitPath(OPEN_FOLDER)
  for (const name of await store.list(state)) {
    if (!name.startsWith(`${open}.`)) continue
    if ((await store.size(`${state}/${name}${openShardPath(shard).slice(OPEN_FOLDER.length)}`)) === bytes)
      return true
  }
  return false
}

function damaged({ path, bytes, partitions }: SealedShard, size: number | null): ExportError {
  return new ExportError(
    'damaged',
    size === null
      ? 'A finished shard is missing'
      : `A finished shard holds ${numberOf(size, 'byte')} instead of ${bytes}`,
    path,
    `Put it back as it was (rows already paid for are in it), or have it exported anew: \`run --redo ${partitions[0]}\`, or \`verify --fix\` for all that is damaged; nothing was changed.`,
  )
}
