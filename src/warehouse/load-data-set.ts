import { createHash } from 'node:crypto'
import { ExportError, isExportError, nullIf, numberOf, type Store, sideBySide } from '../core/index.ts'
import { MANIFEST_PATH, type Manifest, type ManifestShard } from '../state/index.ts'
import { type LoadStep, nextStep, planOf, ROWS_AT_ONCE } from './load-plan.ts'
import {
  countRows,
  deleteRows,
  insertShards,
  isMark,
  type Loaded,
  type Loading,
  type LoadTarget,
  loadedShards,
  notThere,
  type OtherDataSet,
  otherDataSets,
  supersede,
  toSupersede,
} from './table/load-rows.ts'
import { inspectTable, prepareTable } from './table/prepare-table.ts'
import { LEDGER, shownName, type TableSpec } from './table/table.ts'
import type { Database, LoadMode, Warehouse } from './table/warehouse.ts'

type LoadRequest = {
  readonly shards: ShardFiles
  /** Reads the manifest as it is now. */
  readonly manifest: () => Promise<Manifest>
  readonly table: TableSpec
  readonly mode: LoadMode
  readonly evolve: boolean
  /** The id of a data set whose rows go in the transaction in which those of this one come; null: none. */
  readonly supersede: string | null
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
  download(path: string): Promise<void>
  release(path: string): Promise<void>
}

export type LoadResult = {
  readonly shards: { readonly loaded: number; readonly skipped: number; readonly replaced: number }
  /** Shards whose rows were deleted without others in their place, pruned ones for example. */
  readonly removed: number
  readonly rows: number
  /** Rows with strings that were changed because the database rejects them. */
  readonly replacedTexts: number
  /** Identity of the data set. */
  readonly dataSet: string
  /** Rows of the data set that this one has superseded. */
  readonly supersededRows: number
  /** Other data sets with rows in the table. */
  readonly others: readonly OtherDataSet[]
}

/**
 * Each step is one transaction: it takes the lock, reads manifest and ledger, plans, and takes the first step if its
 * shards are at hand; else they are fetched before the next one.
 * @throws ExportError `damaged` when a shard has other bytes than the manifest says; what was loaded before stays
 */
export async function loadDataSet(warehouse: Warehouse, request: LoadRequest): Promise<LoadResult> {
  if (request.mode === 'upsert') requireKey(request.table)
  const table = await warehouse.find(request.table)
  await prepareTable(warehouse, table, request)
  const load = new Load(warehouse, table, request)
  for (let step = await load.turn(); step !== null; ) step = await load.follow(step)
  await warehouse.finish(table)
  return load.result()
}

/** Looks before an export whether the table would take the rows. Changes nothing. @throws ExportError `config` */
export async function requireLoadable(
  warehouse: Warehouse,
  { dataSet, table: given, evolve, supersede: wanted }: Loading & Pick<LoadRequest, 'evolve' | 'supersede'>,
): Promise<void> {
  const table = await warehouse.find(given)
  const loading = { dataSet, table }
  const { isThere, hasLedger } = await inspectTable(warehouse, table, { evolve })
  if (isThere && hasLedger)
    await toSupersede(warehouse, loading, wanted, await loadedShards(warehouse, loading))
  else if (wanted !== null) throw notThere(loading, wanted, [])
}

class Load {
  /** Shards that were fetched, by {@link nameOf}. */
  readonly #atHand = new Set<string>()
  readonly #inserted = new Set<string>()
  readonly #counts = { loaded: 0, replaced: 0, removed: 0, rows: 0, replacedTexts: 0, supersededRows: 0 }
  /** Whether the table had the rows that the ledger lists. */
  #isChecked = false
  #missing = 0
  #seen = { dataSet: '', others: [] as readonly OtherDataSet[], shards: [] as readonly ManifestShard[] }
  /** Shards of the last step that failed; from then on each shard is loaded alone. */
  #failed: string | null = null

  constructor(
    readonly warehouse: Warehouse,
    readonly table: TableSpec,
    readonly request: LoadRequest,
  ) {}

  /** One transaction. @returns the step that is next; null: the table is in line */
  async turn(): Promise<LoadStep | null> {
    const { done, next, ...counts } = await this.warehouse.transaction(this.table, async (database) => {
      const manifest = await this.request.manifest()
      const dataSet = { id: manifest.data_set_id, pipeline: manifest.pipeline }
      const target = { ...this.request, dataSet, table: this.table }
      const entries = await loadedShards(database, target)
      const former = await toSupersede(database, target, this.request.supersede, entries)
      const loaded = entries.filter((entry) => !isMark(entry))
      const steps = await this.#plan(database, manifest.shards, loaded, target)
      const atOnce = former !== null ? Infinity : this.#failed !== null ? 0 : ROWS_AT_ONCE
      const { step, rest } = nextStep(steps, atOnce)
      this.#missing = steps.reduce((sum, { come }) => sum + come.length, 0)
      const isAtHand = step?.come.every((shard) => this.#atHand.has(nameOf(shard))) ?? true
      const isSuperseded = former !== null && isAtHand
      const supersededRows = isSuperseded ? await supersede(database, target, former, entries) : 0
      const replacedTexts = step !== null && isAtHand ? await carryOut(database, step, target) : 0
      const next = isAtHand ? nextStep(rest, atOnce).step : step
      if (next === null) {
        const others = await otherDataSets(database, target)
        this.#seen = { dataSet: dataSet.id, others, shards: manifest.shards }
      }
      return { done: isAtHand ? step : null, next, replacedTexts, supersededRows }
    })
    this.#counts.replacedTexts += counts.replacedTexts
    this.#counts.supersededRows += counts.supersededRows
    if (done !== null) await this.#count(done)
    return next
  }

  /**
   * Fetches the shards of a step, and takes the next turn. One that is damaged or gone may have been replaced by a command
   * that runs beside the load; what comes before it is loaded.
   */
  async follow(step: LoadStep): Promise<LoadStep | null> {
    try {
      await this.#fetch(step)
      return await this.turn()
    } catch (error) {
      if (!isExportError(error, 'damaged') && !(await this.#isGone(step))) throw error
      const failed = step.come.map(({ path }) => path).join('\n')
      if (failed === this.#failed) throw error
      this.#failed = failed
      return this.turn()
    }
  }

  /** Side by side. @throws ExportError `damaged` */
  async #fetch({ come }: LoadStep): Promise<void> {
    const { shards, stop, onShard } = this.request
    const of = this.#inserted.size + this.#missing
    let number = this.#inserted.size
    await sideBySide(come, async (shard) => {
      stop.throwIfAborted()
      onShard(shard.path, Math.min(++number, of), of)
      if (this.#atHand.has(nameOf(shard))) return
      await shards.download(shard.path)
      await requireUnchanged(shards.store, shard)
      this.#atHand.add(nameOf(shard))
    })
  }

  async #isGone({ come }: LoadStep): Promise<boolean> {
    const { store } = this.request.shards
    const sizes = await Promise.all(come.map(({ path }) => store.size(path).catch(nullIf())))
    return sizes.includes(null)
  }

  result(): LoadResult {
    const { loaded, replaced, ...counts } = this.#counts
    const { shards, dataSet, others } = this.#seen
    const skipped = shards.filter(({ path }) => !this.#inserted.has(path)).length
    return { shards: { loaded, skipped, replaced }, ...counts, dataSet, others }
  }

  /** @throws ExportError `target` when the table has other rows than the ledger lists */
  async #plan(
    database: Database,
    shards: readonly ManifestShard[],
    loaded: readonly Loaded[],
    target: LoadTarget,
  ): Promise<readonly LoadStep[]> {
    const plan = planOf(shards, loaded)
    // Under upsert, rows that were replaced by rows that go have to come back, wherever they are.
    const hasToCount = target.mode === 'upsert' ? plan.some(({ gone }) => gone.length > 0) : !this.#isChecked
    if (!hasToCount) return plan
    const rows = await countRows(database, target)
    const listed = loaded.reduce((sum, entry) => sum + entry.rows, 0)
    const isWhole = target.mode === 'upsert' ? rows >= listed : rows === listed
    if (!isWhole && target.mode === 'append') throw otherRows(rows, listed, target.table)
    this.#isChecked = isWhole
    return isWhole ? plan : [{ gone: loaded, isAll: true, come: shards }]
  }

  /** What stands in the place of a shard that is gone replaces it; what is exported again has other paths. */
  async #count({ gone, come }: LoadStep): Promise<void> {
    const replaced = Math.min(gone.length, come.length)
    this.#counts.replaced += replaced
    this.#counts.loaded += come.length - replaced
    this.#counts.removed += gone.length - replaced
    for (const { path, rows } of come) {
      this.#counts.rows += rows
      this.#inserted.add(path)
      await this.request.shards.release(path)
    }
  }
}

function nameOf({ path, sha256 }: ManifestShard): string {
  return `${path} ${sha256}`
}

/** @returns the number of rows with strings that were changed to fit */
async function carryOut(
  database: Database,
  { gone, isAll, come }: LoadStep,
  target: LoadTarget,
): Promise<number> {
  if (isAll || gone.length > 0) await deleteRows(database, target, isAll ? null : gone)
  return come.length === 0 ? 0 : insertShards(database, come, target)
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
