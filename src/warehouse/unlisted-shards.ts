import type { Store } from '../core/index.ts'
import type { Manifest, ManifestShard } from '../state/index.ts'
import { isUnchanged } from './unchanged.ts'
import type { Loaded } from './warehouse.ts'

// After a new start none of those that were loaded is there.
const AT_ONCE = 32

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
  const others = loaded.filter(({ shard }) => !listed.has(shard))
  const found: ManifestShard[] = []
  for (let at = 0; at < others.length; at += AT_ONCE) {
    const some = others.slice(at, at + AT_ONCE)
    const sizes = await Promise.all(some.map(({ shard }) => store.size(shard)))
    for (const [i, { shard: path, sha256, rows, partitions }] of some.entries()) {
      const bytes = sizes[i] ?? null
      if (bytes === null) continue
      const shard = { path, sha256, rows, bytes, partitions: [...partitions], imported_at: null }
      if (await isUnchanged(store, shard)) found.push(shard)
    }
  }
  return found
}
