import { ExportError, isExportError, type Log, type Pipeline, type Store } from '../../core/index.ts'
import { CHECKPOINT_PATH, type ManifestShard, readHeader } from '../../state/index.ts'
import {
  type DataSet,
  loadSealed,
  requireAccounted,
  shardRows,
  type TableSpec,
  type Target,
  tableOf,
  type Warehouse,
} from '../../warehouse/index.ts'
import { openDataSet } from '../open-data-set.ts'
import {
  type LoadedEarlier,
  type LoadOptions,
  nothingLoaded,
  openTarget,
  partitionRules,
} from './load-warehouse.ts'
import { type LocalShards, localShards } from './local-shards.ts'

export type SealedLoaderOptions = Omit<LoadOptions, 'onShard' | 'onWait' | 'reload'> & {
  readonly log: Log
}

// The limit of waiting names of shards and partitions: a few megabytes. The rest is loaded when the run has ended.
const MAX_NAMES = 20_000
/** The number of shards in one query of the ledger. */
const AT_ONCE = 100

/**
 * Loads shards during the run that makes them. It is optional: `loadWarehouse` afterwards loads what is missing. So an
 * error ends it with a warning, and a slow database only leaves more for later. The target is held only while there is
 * something to load.
 */
export class SealedLoader {
  readonly #pipeline: Pipeline
  readonly #target: Target
  readonly #table: TableSpec
  readonly #store: Store
  readonly #options: SealedLoaderOptions
  readonly #loaded: { -readonly [key in keyof LoadedEarlier]: LoadedEarlier[key] }
  readonly #loadedShards = new Set<string>()
  /** Aborts waits before anything is loaded. */
  readonly #leave = new AbortController()
  readonly #waiting: ManifestShard[] = []
  #names = 0
  #accepts: boolean
  #files: LocalShards | null = null
  #isPrepared = false
  #isLoading = false
  #working: Promise<void> | null = null
  #defect: { readonly error: unknown } | null = null

  constructor(pipeline: Pipeline, target: Target, options: SealedLoaderOptions) {
    this.#pipeline = pipeline
    this.#target = target
    this.#table = tableOf(pipeline, options.schema, options.table)
    this.#store = openDataSet(pipeline)
    this.#options = options
    this.#loaded = { ...nothingLoaded(options.clock), shards: this.#loadedShards }
    // Partitions are replaced as a whole, which requires all their shards.
    this.#accepts = options.mode !== 'replace'
  }

  /** Receives a published shard: `onShard` of a run. */
  readonly offer = (shard: ManifestShard): void => {
    const names = this.#names + namesOf(shard)
    if (this.#isOver || names > MAX_NAMES) return
    this.#names = names
    this.#waiting.push(shard)
    this.#working ??= this.#work()
  }

  /** Resolves when the shard in progress is loaded. @returns a value for `loadWarehouse` */
  async end(): Promise<LoadedEarlier> {
    this.#accepts = false
    if (!this.#isLoading) this.#leave.abort(hasEnded())
    await this.#working
    await this.#files?.close()
    if (this.#defect !== null) throw this.#defect.error
    return this.#loaded
  }

  get #isOver(): boolean {
    return !this.#accepts || this.#options.stop.aborted
  }

  async #work(): Promise<void> {
    try {
      while (!this.#isOver && this.#waiting.length > 0) await this.#visit()
    } catch (error) {
      if (!isExportError(error)) this.#defect = { error }
      else if (!this.#isOver) this.#options.log('warn', `${LATER}: ${error.message}`)
      this.#accepts = false
    } finally {
      this.#working = null
    }
  }

  /** Loads the waiting shards, and those that come meanwhile. */
  async #visit(): Promise<void> {
    const { clock, stop, evolve, log } = this.#options
    const warehouse = await openTarget(this.#target, {
      clock,
      stop: AbortSignal.any([stop, this.#leave.signal]),
      // The run has priority for the processors.
      threads: 1,
      onWait: ({ holder }) =>
        log('info', `${holder ?? 'another load'} uses the target; shards wait for it to end`),
    })
    let startedMs = clock.monotonicMs()
    try {
      const table = await warehouse.hold(this.#table)
      startedMs = clock.monotonicMs()
      const dataSet = await this.#begun()
      // Only once: the replacement of views blocks their readers.
      if (!this.#isPrepared) {
        await warehouse.prepare(table, { evolve })
        requireAccounted(await warehouse.account(dataSet, table), table)
      }
      this.#isPrepared = true
      this.#isLoading = true
      while (!this.#isOver && this.#waiting.length > 0) {
        await this.#load(warehouse, dataSet, table, this.#next())
      }
    } finally {
      this.#isLoading = false
      this.#loaded.durationMs += clock.monotonicMs() - startedMs
      await warehouse.close()
    }
  }

  #next(): readonly ManifestShard[] {
    const shards = this.#waiting.splice(0, AT_ONCE)
    for (const shard of shards) this.#names -= namesOf(shard)
    return shards
  }

  /** The data set of the run, which has shards by now. */
  async #begun(): Promise<DataSet> {
    const header = await readHeader(this.#store)
    if (header !== null) return { id: header.data_set_id, pipeline: this.#pipeline.name }
    throw new ExportError({
      kind: 'damaged',
      what: 'The checkpoint is missing',
      where: CHECKPOINT_PATH,
      next: 'Run the pipeline again.',
    })
  }

  async #load(
    warehouse: Warehouse,
    dataSet: DataSet,
    table: TableSpec,
    shards: readonly ManifestShard[],
  ): Promise<void> {
    const { extract, load } = this.#pipeline
    this.#files ??= await localShards(this.#pipeline, this.#store, this.#options.stop)
    const source = { root: this.#files.root, format: load.format }
    const { mode } = this.#options
    this.#loaded.replacedTexts += await loadSealed(warehouse, shards, {
      files: this.#files,
      dataSet,
      table,
      mode,
      loadedAt: this.#loaded.loadedAt,
      loadedEarlier: this.#loadedShards,
      rowsOf: async (shard) => {
        const manifest = { resource: extract.resource, shards: [shard] }
        const rules = await partitionRules(this.#pipeline, this.#store, manifest, this.#options)
        return shardRows(source, dataSet.id, table, shard, rules)
      },
      isStopped: () => this.#isOver,
    })
  }
}

const LATER = 'no more shards are loaded during the run; the rest is loaded when it has ended'

function hasEnded(): ExportError {
  return new ExportError({
    kind: 'interrupted',
    what: 'The run has ended',
    where: '',
    next: 'Load what is missing.',
  })
}

function namesOf({ partitions }: ManifestShard): number {
  return 1 + partitions.length
}
