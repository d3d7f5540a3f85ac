import type { ManifestShard } from '../state/index.ts'
import { requireKey } from './load-data-set.ts'
import type { TableSpec } from './table/table.ts'
import type { DataSet, Loaded, LoadMode, ShardRows, Warehouse } from './table/warehouse.ts'
import type { ShardFiles } from './unchanged.ts'
import { requireUnchanged } from './unchanged.ts'

export type AheadRequest = {
  readonly files: ShardFiles
  readonly dataSet: DataSet
  /** As it was held. */
  readonly table: TableSpec
  /** Not `replace`, where all shards of a partition have to be known. */
  readonly mode: LoadMode
  /** As {@link loadDataSet} will be given it. */
  readonly loadedAt: string
  readonly rowsOf: (shard: ManifestShard) => Promise<ShardRows>
  /** Asked before each shard. */
  readonly isStopped: () => boolean
}

/**
 * Loads shards of which the manifest does not know yet, each in one transaction with its line in the ledger. Those that
 * may have to take the place of others are left to `loadDataSet`.
 * @returns rows with texts that the database does not take as they are
 * @throws ExportError as `loadDataSet` does; what was loaded before stays
 */
export async function loadAhead(
  warehouse: Warehouse,
  shards: readonly ManifestShard[],
  { files, dataSet, table, mode, loadedAt, rowsOf, isStopped }: AheadRequest,
): Promise<number> {
  if (mode === 'upsert') requireKey(table)
  const loaded = await warehouse.loaded(dataSet.id, table, shards)
  let replacedTexts = 0
  for (const shard of aheadOf(shards, loaded, Date.parse(loadedAt))) {
    if (isStopped()) break
    await files.bring(shard.path)
    await requireUnchanged(files.store, shard)
    const rows = await rowsOf(shard)
    const into = { dataSet, table, mode, loadedAt, rowsOf: () => rows }
    const done = await warehouse.load({ shards: [shard], stale: [], forgotten: [] }, into)
    replacedTexts += done.replacedTexts
    await files.drop(shard.path)
  }
  return replacedTexts
}

/**
 * The shards that can go in by themselves, whatever else the manifest will list: neither they nor their partitions are
 * in the ledger, but for shards that the same command has loaded.
 */
export function aheadOf(
  shards: readonly ManifestShard[],
  loaded: readonly Loaded[],
  loadedAtMs: number,
): readonly ManifestShard[] {
  const paths = new Set(loaded.map(({ shard }) => shard))
  const before = loaded.filter((entry) => entry.loadedAtMs !== loadedAtMs)
  const settled = new Set(before.flatMap(({ partitions }) => partitions))
  return shards.filter(
    ({ path, partitions }) => !paths.has(path) && !partitions.some((key) => settled.has(key)),
  )
}
