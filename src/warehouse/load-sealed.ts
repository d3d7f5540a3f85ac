import type { ManifestShard } from '../state/index.ts'
import { requireKey } from './load-data-set.ts'
import type { TableSpec } from './table/table.ts'
import type { DataSet, Loaded, LoadMode, ShardRows, Warehouse } from './table/warehouse.ts'
import type { ShardFiles } from './unchanged.ts'
import { requireUnchanged } from './unchanged.ts'

export type SealedShards = {
  readonly files: ShardFiles
  readonly dataSet: DataSet
  /** As it was held. */
  readonly table: TableSpec
  /** Not `replace`, where all shards of a partition have to be known. */
  readonly mode: LoadMode
  /** As {@link loadDataSet} will be given it. */
  readonly loadedAt: string
  readonly rowsOf: (shard: ManifestShard) => Promise<ShardRows>
  /** Called before each shard. */
  readonly isStopped: () => boolean
}

/**
 * Loads sealed shards that the manifest does not list yet, each in one transaction with its row in the ledger. Shards
 * that may replace others are left to `loadDataSet`.
 * @returns rows with texts that the database does not take as they are
 * @throws ExportError as `loadDataSet` does; what was loaded before stays
 */
export async function loadSealed(
  warehouse: Warehouse,
  shards: readonly ManifestShard[],
  { files, dataSet, table, mode, loadedAt, rowsOf, isStopped }: SealedShards,
): Promise<number> {
  if (mode === 'upsert') requireKey(table)
  const loaded = await warehouse.loaded(dataSet.id, table, shards)
  let replacedTexts = 0
  for (const shard of independentShards(shards, loaded, Date.parse(loadedAt))) {
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
 * The shards that can be loaded before the manifest is known: the ledger has neither them nor their partitions, except
 * for shards that the same command has loaded.
 */
export function independentShards(
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
