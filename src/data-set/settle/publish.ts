import { nameInUse, type OwnedStore, type Store, sideBySide } from '../../core/index.ts'
import { isAsSealed, listSealed, publishSealed, SEALED_FOLDER, sealedPath, stands } from '../../load/index.ts'
import { type CheckpointState, type SealedShard, splitPath } from '../../state/index.ts'

/** @param accept gets shards that are not what was sealed; it may refuse them before anything is published */
export async function publishCommitted(
  store: OwnedStore,
  state: CheckpointState,
  accept: (changed: readonly SealedShard[]) => void = () => {},
): Promise<{ readonly published: readonly SealedShard[]; readonly changed: readonly SealedShard[] }> {
  const names = new Set(await listSealed(store))
  const [published, changed]: [SealedShard[], SealedShard[]] = [[], []]
  if (names.size > 0) {
    const left = [...state.shards].filter(({ shard, sha256 }) =>
      names.has(splitPath(sealedPath(shard, sha256))[1]),
    )
    const sound: SealedShard[] = []
    await sideBySide(left, async (shard) => {
      if ((await store.size(shard.path)) !== null) {
        // A name is no identity: a file system that folds case gives it another shard's.
        if (!(await stands(store, shard))) throw nameInUse(shard.path)
        return
      }
      const isSound = await isAsSealed(store, shard)
      ;(isSound ? sound : changed).push(shard)
    })
    accept(changed)
    if (left.length > 0 && !state.isSettled) await unmark(store)
    await sideBySide(sound, async (shard) => {
      await publishSealed(store, shard)
      published.push(shard)
    })
  }
  return { published, changed }
}

/** Removes sealed shards that are published, or that no commit names. */
export async function removeSealed(store: OwnedStore, state: CheckpointState): Promise<void> {
  const names = await listSealed(store)
  if (names.length === 0) return
  const known = new Set<string>()
  for (const { shard, sha256, path, bytes } of state.shards) {
    const sealed = sealedPath(shard, sha256)
    if (names.includes(splitPath(sealed)[1]) && !(await stands(store, { path, bytes, sha256 })))
      known.add(sealed)
  }
  for (const name of names) {
    const path = `${SEALED_FOLDER}/${name}`
    if (!known.has(path)) await store.remove(path)
  }
}

/** Empty. It is there only while everything that the file plans is exported. */
export const SUCCESS_PATH = '_SUCCESS'

export async function isMarked(store: Store): Promise<boolean> {
  return (await store.size(SUCCESS_PATH)) !== null
}

export async function mark(store: OwnedStore): Promise<void> {
  if (!(await isMarked(store))) await store.replace(SUCCESS_PATH, [])
}

/** In a bucket a delete that is late could remove what the next owner has written, so none is sent without need. */
export async function unmark(store: OwnedStore): Promise<void> {
  if (await isMarked(store)) await store.remove(SUCCESS_PATH)
}
