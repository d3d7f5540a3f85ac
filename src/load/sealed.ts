import { createHash } from 'node:crypto'
import { ExportError, type OwnedStore, type Store } from '../core/index.ts'
import type { SealEntry } from '../state/index.ts'
import { sealedPath } from './layout.ts'

type Sealed = Pick<SealEntry, 'shard' | 'sha256' | 'bytes' | 'path' | 'partitions'>

/** Whether a shard that waits to be published is still what was sealed. Readers take what is published for whole. */
export function isAsSealed(store: Store, sealed: Sealed): Promise<boolean> {
  return holds(store, sealedPath(sealed.shard, sealed.sha256), sealed)
}

/** Whether a shard has its final name, and the bytes there are its own. */
export function stands(store: Store, sealed: Pick<Sealed, 'path' | 'bytes' | 'sha256'>): Promise<boolean> {
  return holds(store, sealed.path, sealed)
}

/**
 * Reads the shard back under its final name: later runs check only its size there.
 * @throws ExportError `damaged` when it is not what was sealed; it has its former name again
 */
export async function publishSealed(store: OwnedStore, sealed: Sealed): Promise<void> {
  const { shard, sha256, path } = sealed
  const before = sealedPath(shard, sha256)
  try {
    await store.publish(before, path)
  } catch (error) {
    if ((await store.size(before)) !== null || (await store.size(path)) !== null) throw error
    await store.requireLock()
    throw changedSinceSealed(sealed)
  }
  if (await holds(store, path, sealed)) return
  // The next owner may remove it.
  await store.requireLock()
  // Whoever wrote to it may have created it again.
  await store.remove(before)
  await store.publish(path, before)
  throw changedSinceSealed(sealed)
}

export function changedSinceSealed(
  { shard, sha256, partitions }: Sealed,
  next = `Check the disk, then export it again: \`run --redo ${partitions.join(' ')}\`.`,
): ExportError {
  const what = 'A sealed shard changed or vanished before it was published'
  return new ExportError({ kind: 'damaged', what, where: sealedPath(shard, sha256), next })
}

async function holds(
  store: Store,
  path: string,
  { sha256, bytes }: Pick<Sealed, 'sha256' | 'bytes'>,
): Promise<boolean> {
  if ((await store.size(path)) !== bytes) return false
  const hash = createHash('sha256')
  try {
    for await (const chunk of store.stream(path)) hash.update(chunk)
  } catch (error) {
    // The next owner may have moved it meanwhile.
    if ((await store.size(path)) === null) return false
    throw error
  }
  return hash.digest('hex') === sha256
}
