import type { Store } from '../core/index.ts'
import type { Manifest, ManifestShard } from '../state/index.ts'
import { isUnchanged } from './unchanged.ts'
import type { Loaded } from './warehouse.ts'

/**
 * Shards that a run has loaded ahead which was killed, or goes on still: the manifest does not list them yet, but they
 * lie there as they were loaded. What the data set has given up does not.
 */
export async function unlistedShards(
  store: Store,
  manifest: Manifest,
  loaded: readonly Loaded[],
): Promise<readonly ManifestShard[]> {
  const listed = new Set(manifest.shards.map(({ path }) => path))
  const found: ManifestShard[] = []
  for (const { shard: path, sha256, rows, partitions } of loaded) {
    const bytes = listed.has(path) ? null : await store.size(path)
    if (bytes === null) continue
    const shard = { path, sha256, rows, bytes, partitions: [...partitions], imported_at: null }
    if (await isUnchanged(store, shard)) found.push(shard)
  }
  return found
}
