import { createHash } from 'node:crypto'
import { ExportError, type SealEntry, type Store } from '../core/index.ts'
import { sealedPath } from './layout.ts'

type Sealed = Pick<SealEntry, 'shard' | 'sha256' | 'bytes'>

/** Whether a shard that waits to be published is still what was sealed. Readers take what is published for whole. */
export async function isAsSealed(store: Store, { shard, sha256, bytes }: Sealed): Promise<boolean> {
  const path = sealedPath(shard, sha256)
  if ((await store.size(path)) !== bytes) return false
  const hash = createHash('sha256')
  for await (const chunk of store.stream(path)) hash.update(chunk)
  return hash.digest('hex') === sha256
}

/** The error for a shard that changed before it was published. */
export function changedSinceSealed({ shard, sha256 }: Sealed, next: string): ExportError {
  const what = 'A finished shard changed or vanished before it was published'
  return new ExportError('damaged', what, sealedPath(shard, sha256), next)
}
