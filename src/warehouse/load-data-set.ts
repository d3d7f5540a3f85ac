import { createHash } from 'node:crypto'
import { ExportError, type Store } from '../core/index.ts'
import { MANIFEST_PATH, type Manifest, type ManifestShard } from '../state/index.ts'
import { PartitionGroups } from './table/partition-groups.ts'
import type { TableSpec } from './table/table.ts'
import {
  type Loaded,
  type LoadMode,
  type LoadTarget,
  type LoadUnit,
  requireAccounted,
  type ShardRows,
  type Warehouse,
} from './table/warehouse.ts'

// After `run --fresh`, none of the loaded shards exists.
const AT_ONCE = 32

type LoadRequest = {
  /** The data set. */
  readonly store: Store
  readonly shards: ShardFiles
  readonly manifest: Manifest
  readonly table: TableSpec
  readonly mode: LoadMode
  readonly evolve: boolean
  /** Replaces all rows that the table has of the data set. */
  readonly reload: boolean
  /** ISO 8601, in milliseconds. */
  readonly loadedAt: string
  /** Paths of shards that this command loaded before the manifest was written: they count as loaded now. */
  readonly loadedEarlier: ReadonlySet<string>
  readonly rowsOf: LoadTarget['rowsOf']
  /** Paths of shards that were replaced or pruned; asked only where the ledger has shards that the manifest lacks. */
  readonly invalidated: () => Promise<ReadonlySet<string>>
  readonly stop: AbortSignal
  /** Called before each shard, with its number among those that are loaded. */
  readonly onShard: (path: string, number: number, of: number) => void
}

export type LoadResult = {
  readonly shards: { readonly loaded: number; readonly skipped: number; readonly replaced: number }
  /** Shards whose rows were deleted without others in their place, pruned ones for example. */
  readonly removed: number
  readonly rows: number
  /** Rows with strings that were changed because the database rejects them. */
  readonly replacedTexts: number
  /** Whether the ledger lists rows of the data set and the table had none: somebody removed them. */
  readonly isEmptied: boolean
  /** Identities of other data sets of the same pipeline with rows in the table. */
  readonly others: readonly string[]
}

/**
 * Loads what the manifest lists and the ledger lacks, each shard in one transaction with its ledger entry. What was
 * exported anew replaces whole partitions.
 * @throws ExportError `damaged` when a shard's bytes are not those of the manifest; what was loaded before stays
 */
export async function loadDataSet(warehouse: Warehouse, request: LoadRequest): Promise<LoadResult> {
  const { shards: files, manifest, mode, evolve, reload, loadedAt, rowsOf, stop, onShard } = request
  if (mode === 'upsert') requireKey(request.table)
  const dataSet = { id: manifest.data_set_id, pipeline: manifest.pipeline }
  const table = await warehouse.hold(request.table)
  await warehouse.prepare(table, { evolve })
  const loaded = await warehouse.loaded(dataSet.id, table, null)
  const account = await warehouse.account(dataSet, table)
  const shards = [...manifest.shards, ...(await unlistedShards(request, loaded))]
  const replacesWrong = reload || (mode === 'replace' && !account.isEmptied)
  const wrong = replacesWrong ? account.differences.flatMap(({ partitions }) => partitions) : []
  const units = unitsOf(shards, loaded, mode, { reload, wrong })
  if (!reload) requireAccounted(account, table, new Set(units.flatMap(({ stale }) => stale)))
  const isFromThisCommand = ({ shard }: Loaded): boolean => request.loadedEarlier.has(shard)
  const known = new Set(loaded.filter((entry) => !isFromThisCommand(entry)).map(({ shard }) => shard))
  // Replaced ones are removed below.
  const loadedEarlier = new Map(loaded.filter(isFromThisCommand).map(({ shard, rows }) => [shard, rows]))
  const total = units.reduce((sum, { shards }) => sum + shards.length, 0)
  const listed = new Set(shards.map(({ path }) => path))
  const result = { loaded: 0, replaced: 0, removed: 0, rows: 0, replacedTexts: 0 }
  let number = 0
  for (const unit of units) {
    if (stop.aborted) throw interrupted()
    for (const shard of unit.shards) {
      onShard(shard.path, ++number, total)
      await files.download(shard.path)
      await requireUnchanged(files.store, shard)
    }
    const done = await warehouse.load(unit, { dataSet, table, mode, loadedAt, rowsOf })
    result.rows += done.rows
    result.replacedTexts += done.replacedTexts
    for (const path of unit.forgotten) loadedEarlier.delete(path)
    for (const { path } of unit.shards) await files.release(path)
    // What is exported again has other paths.
    const gone = unit.forgotten.filter((path) => !listed.has(path)).length
    const added = unit.shards.filter(({ path }) => !known.has(path)).length
    const inPlace = Math.min(gone, added)
    result.replaced += unit.shards.length - added + inPlace
    result.loaded += added - inPlace
    result.removed += gone - inPlace
  }
  await warehouse.finish(table)
  for (const rows of loadedEarlier.values()) {
    result.loaded++
    result.rows += rows
  }
  const { loaded: added, replaced, ...rest } = result
  return {
    shards: { loaded: added, skipped: shards.length - total - loadedEarlier.size, replaced },
    ...rest,
    isEmptied: account.isEmptied && !reload,
    others: account.others,
  }
}

/**
 * The transactions of a load. A new shard is one. Where shards changed or are gone, their partitions are deleted and
 * all shards of these partitions are loaded in one transaction, with the partitions that share a shard with them.
 * @param wrong partitions with other rows in the table than the ledger lists: they are replaced too. Those that neither
 *   shards nor ledger name are deleted with `reload`, which loads everything again
 */
export function unitsOf(
  shards: readonly ManifestShard[],
  loaded: readonly Loaded[],
  mode: LoadMode,
  { reload, wrong }: { readonly reload: boolean; readonly wrong: readonly string[] } = {
    reload: false,
    wrong: [],
  },
): readonly LoadUnit[] {
  const ledger = new Map(loaded.map((entry) => [entry.shard, entry]))
  const byPath = new Map(shards.map((shard) => [shard.path, shard]))
  const isNew = ({ path }: ManifestShard): boolean => !ledger.has(path)
  const isWrong = new Set(wrong)
  const changed = loaded.filter(
    ({ shard, sha256, partitions }) =>
      reload || byPath.get(shard)?.sha256 !== sha256 || partitions.some((key) => isWrong.has(key)),
  )
  const groups = new PartitionGroups()
  // If another shard has its path now, the partitions of both.
  for (const { shard, partitions } of changed)
    groups.join([...partitions, ...(byPath.get(shard)?.partitions ?? [])])
  if (mode === 'replace' || reload) {
    for (const shard of shards) if (isNew(shard)) groups.join(shard.partitions)
  }
  if (reload) for (const partition of wrong) groups.join([partition])
  // Partitions that share a shard are replaced together.
  for (let before = -1; before < groups.size; ) {
    before = groups.size
    for (const { partitions } of [...loaded, ...shards]) groups.spread(partitions)
  }

  const units = new Map<string, { shards: ManifestShard[]; stale: string[]; forgotten: string[] }>()
  for (const [partition, root] of groups.members()) {
    const unit = units.get(root) ?? { shards: [], stale: [], forgotten: [] }
    units.set(root, unit)
    unit.stale.push(partition)
  }
  const unitOf = (partitions: readonly string[]) => units.get(groups.rootOf(partitions) ?? '')
  for (const { shard, partitions } of loaded) unitOf(partitions)?.forgotten.push(shard)
  const single: LoadUnit[] = []
  for (const shard of shards) {
    const unit = unitOf(shard.partitions)
    if (unit !== undefined) unit.shards.push(shard)
    else if (isNew(shard)) single.push({ shards: [shard], stale: [], forgotten: [] })
  }
  return [...units.values(), ...single]
}

export function requireKey(table: TableSpec): void {
  const names = new Set(table.columns.map(({ name }) => name))
  const missing = ['query_type', 'query_value', 'id'].filter((name) => !names.has(name))
  if (missing.length === 0) return
  throw new ExportError({
    kind: 'config',
    what: `--mode upsert tells rows apart by query_type, query_value and id, and these are not exported: ${missing.join(', ')}`,
    where: MANIFEST_PATH,
    next: 'Choose --mode append or replace, or export with these columns.',
  })
}

function interrupted(): ExportError {
  return new ExportError({
    kind: 'interrupted',
    what: 'The load was stopped',
    where: '',
    next: 'Load again to continue.',
  })
}

/**
 * Shards that the manifest does not list yet, loaded while a run is in progress or after it was killed. Invalidated
 * shards are not among them.
 */
async function unlistedShards(
  { store, manifest, invalidated }: Pick<LoadRequest, 'store' | 'manifest' | 'invalidated'>,
  loaded: readonly Loaded[],
): Promise<readonly ManifestShard[]> {
  const listed = new Set(manifest.shards.map(({ path }) => path))
  const unlisted = loaded.filter(({ shard }) => !listed.has(shard))
  if (unlisted.length === 0) return []
  // After a crash their files may still be there.
  const gone = await invalidated()
  const others = unlisted.filter(({ shard }) => !gone.has(shard))
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

/** A shard that is not what the manifest says must not get into a table. @throws ExportError `damaged` */
async function requireUnchanged(store: ShardFiles['store'], shard: ManifestShard): Promise<void> {
  if (await isUnchanged(store, shard)) return
  throw new ExportError({
    kind: 'damaged',
    what: 'The shard is missing or its bytes are not those that were exported',
    where: shard.path,
    next: 'Run `verify`, and `verify --fix` to export it anew; nothing of it was loaded.',
  })
}

async function isUnchanged(
  store: ShardFiles['store'],
  { path, sha256, bytes }: ManifestShard,
): Promise<boolean> {
  const hash = createHash('sha256')
  if ((await store.size(path)) === bytes) for await (const chunk of store.stream(path)) hash.update(chunk)
  return hash.digest('hex') === sha256
}

/** Shards as local files, which the database can read. */
type ShardFiles = {
  readonly store: Pick<Store, 'size' | 'stream'>
  /** Makes a shard available. */
  download(path: string): Promise<void>
  /** The shard is not needed any more. */
  release(path: string): Promise<void>
}

/** The table is as `hold` returned it; the mode is not `replace`, which needs all shards of a partition. */
type SealedShards = Omit<LoadTarget, 'rowsOf'> & {
  readonly files: ShardFiles
  /** Paths of shards that the same command has loaded: each is added before it is loaded. */
  readonly loadedEarlier: Set<string>
  readonly rowsOf: (shard: ManifestShard) => Promise<ShardRows>
  /** Called before each shard. */
  readonly isStopped: () => boolean
}

/**
 * Loads sealed shards that the manifest does not list yet, each in one transaction with its row in the ledger. Shards
 * that may replace others are left to `loadDataSet`.
 * @returns the number of rows with strings that were changed because the database rejects them
 * @throws ExportError as `loadDataSet` does; what was loaded before stays
 */
export async function loadSealed(
  warehouse: Warehouse,
  shards: readonly ManifestShard[],
  { files, dataSet, table, mode, loadedAt, loadedEarlier, rowsOf, isStopped }: SealedShards,
): Promise<number> {
  if (mode === 'upsert') requireKey(table)
  const loaded = await warehouse.loaded(dataSet.id, table, shards)
  let replacedTexts = 0
  for (const shard of independentShards(shards, loaded, loadedEarlier)) {
    if (isStopped()) break
    await files.download(shard.path)
    await requireUnchanged(files.store, shard)
    const rows = await rowsOf(shard)
    const into = { dataSet, table, mode, loadedAt, rowsOf: () => rows }
    loadedEarlier.add(shard.path)
    const done = await warehouse.load({ shards: [shard], stale: [], forgotten: [] }, into)
    replacedTexts += done.replacedTexts
    await files.release(shard.path)
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
  loadedEarlier: ReadonlySet<string>,
): readonly ManifestShard[] {
  const paths = new Set(loaded.map(({ shard }) => shard))
  const before = loaded.filter(({ shard }) => !loadedEarlier.has(shard))
  const settled = new Set(before.flatMap(({ partitions }) => partitions))
  return shards.filter(
    ({ path, partitions }) => !paths.has(path) && !partitions.some((key) => settled.has(key)),
  )
}
