import type { Store } from '../core/index.ts'

/** Shards where the database can read them. */
export type ShardFiles = {
  readonly store: Pick<Store, 'size' | 'stream'>
  /** Has a shard there. */
  bring(path: string): Promise<void>
  /** It is needed no longer. */
  drop(path: string): Promise<void>
}
