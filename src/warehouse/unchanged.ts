import { createHash } from 'node:crypto'
import { ExportError, type Store } from '../core/index.ts'
import type { ManifestShard } from '../state/index.ts'

/** A shard that is not what the manifest says must not get into a table. @throws ExportError `damaged` */
export async function requireUnchanged(store: ShardFiles['store'], shard: ManifestShard): Promise<void> {
  if (await isUnchanged(store, shard)) return
  throw new ExportError(
    'damaged',
    'The shard is missing or its bytes are not those that were exported',
    shard.path,
    'Run `verify`, and `verify --fix` to export it anew; nothing of it was loaded.',
  )
}

export async function isUnchanged(
  store: ShardFiles['store'],
  { path, sha256, bytes }: ManifestShard,
): Promise<boolean> {
  const hash = createHash('sha256')
  if ((await store.size(path)) === bytes) for await (const chunk of store.stream(path)) hash.update(chunk)
  return hash.digest('hex') === sha256
}

/** Shards where the database can read them. */
export type ShardFiles = {
  readonly store: Pick<Store, 'size' | 'stream'>
  /** Has a shard there. */
  bring(path: string): Promise<void>
  /** It is needed no longer. */
  drop(path: string): Promise<void>
}
