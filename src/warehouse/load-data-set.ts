import { createHash } from 'node:crypto'
import { ExportError, getOrInsert, isExportError, numberOf, type Store } from '../core/index.ts'
import { MANIFEST_PATH, type Manifest, type ManifestShard } from '../state/index.ts'
import {
  adoptCompacted,
  countRows,
  deleteRows,
  insertShards,
  type Loaded,
  type LoadTarget,
  loadedShards,
  missingShards,
  otherDataSets,
} from './table/load-rows.ts'
import { partitionOf } from './table/shard-rows.ts'
import { LEDGER, shownName, type TableSpec } from './table/table.ts'
import type { Database, LoadMode, Warehouse } from './table/warehouse.ts'

type LoadRequest = {
  readonly shards: ShardFiles
  readonly manifest: Manifest
  readonly table: TableSpec
  readonly mode: LoadMode
  readonly evolve: boolean
  /** ISO 8601, in milliseconds. */
  readonly loadedAt: string
  readonly rowsOf: LoadTarget['rowsOf']
  readonly stop: AbortSignal
  /** Called before each shard, with its number among those that are loaded. */
  readonly onShard: (path: string, number: number, of: number) => void
}

/** Shards as local files, which the database can read. */
type ShardFiles = {
  readonly store: Pick<Store, 'size' | 'stream'>
  /** Makes a shard available. */
  download(path: string): Promise<void>
  /** The shard is not needed any more. */
  release(path: string): Promise<void>
}

export type LoadResult = {
  readonly shards: { readonly loaded: number; readonly skipped: number; readonly replaced: number }
  /** Shards whose rows were deleted without others in their place, pruned ones for example. */
  readonly removed: number
  readonly rows: number
  /** Rows with strings that were changed because the database rejects them. */
  readonly replacedTexts: number
  /** Identities of other data sets of the same pipeline with rows in the table. */
  readonly others: readonly string[]
}

/**
 * Loads what the manifest lists and the ledger lacks, each shard in one transaction with its ledger entry, small ones
 * together. Where rows have to go, they go in one transaction with all that comes in their place.
 * @throws ExportError `damaged` when a shard's bytes are not those of the manifest; what was loaded before stays
 */
export async function loadDataSet(warehouse: Warehouse, request: LoadRequest): Promise<LoadResult> {
  const { manifest, mode, evolve, loadedAt, rowsOf, stop } = request
  if (mode === 'upsert') requireKey(request.table)
  const table = await warehouse.find(request.table)
  await warehouse.prepare(table, { evolve })
  const dataSet = { id: manifest.data_set_id, pipeline: manifest.pipeline }
  const target = { dataSet, table, mode, loadedAt, rowsOf }
  const done = { shards: 0, rows: 0, replacedTexts: 0, byOthers: 0 }
  const load = async (
    database: Database,
    shards: readonly ManifestShard[],
    plan: LoadPlan,
  ): Promise<void> => {
    if (shards.length === 0) return
    for (const shard of shards) {
      if (stop.aborted) throw interrupted()
      request.onShard(shard.path, ++done.shards, plan.instead.length + plan.added.length)
      await request.shards.download(shard.path)
      await requireUnchanged(request.shards.store, shard)
      done.rows += shard.rows
    }
    done.replacedTexts += await insertShards(database, shards, target)
    for (const { path } of shards) await request.shards.release(path)
  }
  const { plan, loaded, others } = await warehouse.transaction(table, async (database) => {
    const loaded = await adoptCompacted(
      database,
      manifest.shards,
      await loadedShards(database, target),
      target,
    )
    const plan = await planFor(database, manifest.shards, loaded, target)
    if (plan.gone?.size !== 0) await deleteRows(database, target, plan.gone)
    for (const shards of together(plan.instead)) await load(database, shards, plan)
    return { plan, loaded, others: await otherDataSets(database, target) }
  })
  const loadTogether = (shards: readonly ManifestShard[]): Promise<void> =>
    warehouse.transaction(table, async (database) => {
      const missing = await missingShards(database, shards, target)
      done.byOthers += shards.length - missing.length
      await load(database, missing, plan)
    })
  for (const shards of together(plan.added)) {
    const before = { ...done }
    try {
      await loadTogether(shards)
    } catch (error) {
      if (shards.length === 1 || !isExportError(error, 'damaged')) throw error
      // What comes before a damaged one is whole.
      Object.assign(done, before)
      for (const shard of shards) await loadTogether([shard])
    }
  }
  await warehouse.finish(table)
  const { rows, replacedTexts, byOthers } = done
  const { shards, removed } = countsOf(plan, manifest.shards, loaded)
  const counts = { ...shards, loaded: shards.loaded - byOthers, skipped: shards.skipped + byOthers }
  return { shards: counts, removed, rows, replacedTexts, others }
}

/** Neighbours that share statements, which cost more than the rows of a small shard. */
function together(shards: readonly ManifestShard[]): Iterable<readonly ManifestShard[]> {
  const groups = new Map<number, ManifestShard[]>()
  let cost = 0
  for (const shard of shards) {
    getOrInsert(groups, Math.floor(cost / 100_000), () => []).push(shard)
    cost += 1000 + shard.rows
  }
  return groups.values()
}

/** What a load does. */
export type LoadPlan = {
  /** The `spillway_partition` of rows that are deleted; null: all of the data set. */
  readonly gone: ReadonlySet<string> | null
  /** Shards that are loaded in the same transaction. */
  readonly instead: readonly ManifestShard[]
  /** Other shards that the ledger lacks: small ones share a transaction. */
  readonly added: readonly ManifestShard[]
}

/** @throws ExportError `target` when the table has other rows than the ledger lists */
async function planFor(
  database: Database,
  shards: readonly ManifestShard[],
  loaded: readonly Loaded[],
  target: LoadTarget,
): Promise<LoadPlan> {
  const rows = await countRows(database, target)
  const listed = loaded.reduce((sum, entry) => sum + entry.rows, 0)
  const plan = planOf(shards, loaded)
  const all = { gone: null, instead: shards, added: [] }
  switch (target.mode) {
    // Rows that were replaced by rows that go have to come back, wherever they are.
    case 'upsert':
      return rows < listed && plan.gone?.size !== 0 ? all : plan
    case 'replace':
      return rows === listed ? plan : all
    case 'append':
      if (rows !== listed) throw otherRows(rows, listed, target.table)
      return plan
  }
}

/**
 * If a shard is gone or changed, the rows of its partition go, or, if it held several, its own. With them come the
 * shards of these partitions, in the same transaction.
 */
export function planOf(shards: readonly ManifestShard[], loaded: readonly Loaded[]): LoadPlan {
  const digests = new Map(shards.map(({ path, sha256 }) => [path, sha256]))
  const outdated = loaded.filter(({ shard, sha256 }) => digests.get(shard) !== sha256)
  const gone = new Set(outdated.map(({ partition }) => partition))
  // The ledger does not say which partitions they held.
  const isShared = outdated.some(({ shard, partition }) => shard === partition)
  const ledger = new Map(loaded.map((entry) => [entry.shard, entry.sha256]))
  const isMissing = ({ path, sha256 }: ManifestShard): boolean => ledger.get(path) !== sha256
  const isInstead = (shard: ManifestShard): boolean =>
    isMissing(shard)
      ? gone.size > 0 && (isShared || shard.partitions.some((key) => gone.has(key)))
      : gone.has(partitionOf(shard))
  return {
    gone,
    instead: shards.filter(isInstead),
    added: shards.filter((shard) => isMissing(shard) && !isInstead(shard)),
  }
}

/** What is exported again has other paths. */
function countsOf(
  { gone, instead, added }: LoadPlan,
  shards: readonly ManifestShard[],
  loaded: readonly Loaded[],
): Pick<LoadResult, 'shards' | 'removed'> {
  const known = new Set(loaded.map(({ shard }) => shard))
  const listed = new Set(shards.map(({ path }) => path))
  const fresh = instead.filter(({ path }) => !known.has(path)).length
  const left = loaded.filter(
    ({ shard, partition }) => !listed.has(shard) && (gone === null || gone.has(partition)),
  ).length
  const inPlace = Math.min(fresh, left)
  return {
    shards: {
      loaded: added.length + fresh - inPlace,
      skipped: shards.length - instead.length - added.length,
      replaced: instead.length - fresh + inPlace,
    },
    removed: left - inPlace,
  }
}

function otherRows(rows: number, listed: number, table: TableSpec): ExportError {
  return new ExportError({
    kind: 'target',
    what: `The table has ${numberOf(rows, 'row')} of this data set, and ${LEDGER} lists ${listed}: it was loaded with --mode upsert, or somebody changed one of the two, or restored it`,
    where: shownName(table, table.name),
    next: 'Go on with `load --mode upsert` (`run --load` always appends), or load with --mode replace, which replaces all rows that the table has of this data set; nothing was changed.',
  })
}

function requireKey(table: TableSpec): void {
  const names = new Set(table.columns.map(({ name }) => name))
  const missing = ['query_type', 'query_value', 'id', 'imported_at'].filter((name) => !names.has(name))
  if (missing.length === 0) return
  throw new ExportError({
    kind: 'config',
    what: `--mode upsert needs query_type, query_value, id and imported_at, and these are not exported: ${missing.join(', ')}`,
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

/** A shard that is not what the manifest says must not get into a table. @throws ExportError `damaged` */
async function requireUnchanged(
  store: ShardFiles['store'],
  { path, sha256, bytes }: ManifestShard,
): Promise<void> {
  const hash = createHash('sha256')
  if ((await store.size(path)) === bytes) for await (const chunk of store.stream(path)) hash.update(chunk)
  if (hash.digest('hex') === sha256) return
  throw new ExportError({
    kind: 'damaged',
    what: 'The shard is missing or its bytes are not those that were exported',
    where: path,
    next: 'Run `verify`, which prints the command that exports it again; nothing of it was loaded.',
  })
}
