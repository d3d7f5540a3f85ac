import {
  type Clock,
  columnsOf,
  ExportError,
  kindOfRows,
  type Pipeline,
  parseWindow,
  type Store,
} from '../../core/index.ts'
import { shardExtension } from '../../load/index.ts'
import { checkMaskKey, type Manifest, readCheckpoint, readHeader, splitPath } from '../../state/index.ts'
import { maskedQueryValue, REDACTED } from '../../transform/index.ts'
import {
  DIALECTS,
  type DialectName,
  DuckdbWarehouse,
  type LoadMode,
  type LoadResult,
  loadDataSet,
  type PartitionRule,
  PostgresWarehouse,
  requireNames,
  rowColumns,
  shardRows,
  type Target,
  type TargetWait,
  tableMounts,
  tableOf,
  type Warehouse,
} from '../../warehouse/index.ts'
import { openDataSet, requireManifest } from '../open-data-set.ts'
import { namePipeline } from '../queries.ts'
import { localShards } from './local-shards.ts'

export type LoadOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  /** Reads a secret by the name of its variable; null when it is not set. */
  readonly readSecret: (name: string) => Promise<string | null>
  /** Called only if shards hold rows of several masked queries. */
  readonly readMaskKey: () => Promise<Uint8Array | null>
  readonly schema: string | null
  /** null: named after what is exported. */
  readonly table: string | null
  readonly mode: LoadMode
  readonly evolve: boolean
  /** Replaces all rows of the data set in the table. */
  readonly reload: boolean
  /** Called once when another process holds the target. */
  readonly onWait: (wait: TargetWait) => void
  readonly onShard: (path: string, number: number, of: number) => void
}

export type LoadSummary = LoadResult & {
  readonly target: string
  readonly table: string
  /** Its identity. */
  readonly dataSet: string
  readonly durationMs: number
}

/** What the same command loaded before the manifest was written. */
export type LoadedEarlier = {
  /** ISO 8601: the time in the ledger for everything that one command loads. */
  readonly loadedAt: string
  /** Paths of the shards. The ledger tells which of them were committed. */
  readonly shards: ReadonlySet<string>
  /** Rows, as in {@link LoadResult}; the ledger has the total. */
  readonly replacedTexts: number
  readonly durationMs: number
}

/**
 * Loads the shards that the manifest lists into a database, each once.
 * @param earlier what a `SealedLoader` has loaded of them; counted as loaded now
 * @throws ExportError `config` when nothing is exported yet, a name is invalid, the table does not fit, or the mask key
 *   is needed and is not the one used so far; `target` when the database cannot be reached or fails, `credentials` when
 *   it rejects the user or the password, `locked` when another process holds it for too long; `damaged` when a shard
 *   differs from the manifest
 */
export async function loadWarehouse(
  pipeline: Pipeline,
  target: Target,
  options: LoadOptions,
  earlier: LoadedEarlier = nothingLoaded(options.clock),
): Promise<LoadSummary> {
  const { clock, stop, mode, evolve, reload, onShard } = options
  requireNames(target.kind, options)
  const startedMs = clock.monotonicMs()
  const store = openDataSet(pipeline)
  const manifest = await requireManifest(store, pipeline, 'load')
  const table = tableOf(pipeline, options.schema, options.table)
  checkColumns(manifest, pipeline)
  const readMaskKey = () => readOwnMaskKey(pipeline, store, options)
  const rulesOf = await partitionRules(pipeline, store, manifest, { ...options, readMaskKey })
  const warehouse = await openTarget(target, { ...options, threads: null })
  const shards = await localShards(pipeline, store, stop)
  try {
    const source = { root: shards.root, format: pipeline.load.format }
    const result = await loadDataSet(warehouse, {
      store,
      shards,
      manifest,
      table,
      mode,
      evolve,
      reload,
      loadedAt: earlier.loadedAt,
      loadedEarlier: earlier.shards,
      invalidated: async () => (await readCheckpoint(store))?.invalidated ?? new Set(),
      rowsOf: (shard) => shardRows(source, manifest.data_set_id, table, shard, rulesOf),
      stop,
      onShard,
    })
    return {
      ...result,
      replacedTexts: result.replacedTexts + earlier.replacedTexts,
      target: target.label,
      dataSet: manifest.data_set_id,
      table: table.name,
      durationMs: Math.round(clock.monotonicMs() - startedMs + earlier.durationMs),
    }
  } catch (error) {
    // An aborted load shows as a connection that ended.
    throw stop.aborted ? interrupted(error) : error
  } finally {
    await warehouse.close()
    await shards.close()
  }
}

/** The value if nothing was loaded earlier. */
export function nothingLoaded(clock: Clock): LoadedEarlier {
  return { loadedAt: new Date(clock.now()).toISOString(), shards: new Set(), replacedTexts: 0, durationMs: 0 }
}

type OpenOptions = Pick<LoadOptions, 'clock' | 'stop' | 'onWait'> & {
  /** Threads of DuckDB; null: as many as there are processors. */
  readonly threads: number | null
}

export function openTarget(target: Target, options: OpenOptions): Promise<Warehouse> {
  switch (target.kind) {
    case 'duckdb':
      return DuckdbWarehouse.open(target.file, options)
    case 'postgres':
      return PostgresWarehouse.connect(target.url, target.label, options)
  }
}

/** The conditions that distinguish the rows of partitions in a shared shard. */
export async function partitionRules(
  pipeline: Pipeline,
  store: Store,
  manifest: Pick<Manifest, 'resource' | 'shards'>,
  options: Pick<LoadOptions, 'readSecret' | 'readMaskKey'>,
): Promise<(partitions: readonly string[]) => readonly PartitionRule[]> {
  if (manifest.resource === 'reports') return (partitions) => partitions.map(reportRule)
  const values = await queryValues(pipeline, store, manifest, options)
  return (partitions) =>
    partitions.map((key) => {
      const [query, range] = splitPath(key)
      const window = parseWindow(range)
      const { type, value } = values.get(query) ?? { type: null, value: null }
      return {
        key,
        queryType: type,
        queryValue: value,
        from: window?.from ?? null,
        until: window?.until ?? null,
        id: null,
      }
    })
}

/**
 * The key that the rows were masked with. Under another one, no row has the `query_value` that its query would get.
 * @throws ExportError `config` when the data set was begun with another key
 */
async function readOwnMaskKey(
  pipeline: Pipeline,
  store: Store,
  { readMaskKey }: Pick<LoadOptions, 'readMaskKey'>,
): Promise<Uint8Array | null> {
  const maskKey = await readMaskKey()
  if (maskKey !== null) checkMaskKey(await readHeader(store), maskKey, pipeline)
  return maskKey
}

function reportRule(key: string): PartitionRule {
  const id = Number(/^report\.(\d+)\//.exec(key)?.[1])
  return { key, queryType: null, queryValue: null, from: null, until: null, id }
}

/** `query_type` and `query_value` in the rows of queries, by name; empty if no shard needs them. */
async function queryValues(
  pipeline: Pipeline,
  store: Store,
  { shards }: Pick<Manifest, 'shards'>,
  { readSecret, readMaskKey }: Pick<LoadOptions, 'readSecret' | 'readMaskKey'>,
): Promise<ReadonlyMap<string, { readonly type: string; readonly value: string }>> {
  const needed = new Set<string>()
  for (const { partitions } of shards) {
    const queries = new Set(partitions.map((key) => splitPath(key)[0]))
    if (queries.size > 1) for (const query of queries) needed.add(query)
  }
  const values = new Map<string, { readonly type: string; readonly value: string }>()
  if (needed.size === 0) return values
  const maskKey = await readMaskKey()
  const { extract } = namePipeline(pipeline, maskKey)
  const masking = { ...pipeline.transform, maskKey }
  for (const query of [...(extract.unfiltered?.queries ?? []), ...extract.queries]) {
    if (!needed.has(query.name) || values.has(query.name)) continue
    const secret = query.type === 'secret' ? await readSecret(query.secretEnv) : null
    values.set(query.name, { type: query.type, value: maskedQueryValue(query, secret, masking) })
  }
  const retired = [...needed].filter((name) => !values.has(name))
  const named = retired.length === 0 ? null : ((await readCheckpoint(store))?.queries ?? null)
  for (const name of retired) {
    const dot = name.indexOf('.')
    const label = decodeURIComponent(name.slice(dot + 1))
    const type = typeOfRetired(name.slice(0, dot), label)
    const value = retiredValue(type, named?.get(name) ?? null, label, masking)
    if (value === null) throw unknownQuery(name, pipeline)
    values.set(name, { type, value })
  }
  return values
}

/** The type of a query, by the two parts of its name. */
function typeOfRetired(type: string, label: string): string {
  if (type !== 'feed') return type
  return label === 'tenant' ? label : 'identifier'
}

/**
 * `query_value` in the rows of a query that the pipeline no longer has; null: not known.
 * @param named from the checkpoint, which has it of queries with a user-defined name
 * @param label the query's own value, if it has no such name
 */
function retiredValue(
  type: string,
  named: string | null,
  label: string,
  { identity }: Pipeline['transform'],
): string | null {
  if (type === 'secret') return null
  if (type !== 'email' && type !== 'keyword') return named ?? label
  if (identity === 'drop') return REDACTED
  return identity === 'hmac' ? named : (named ?? label)
}

function checkColumns(manifest: Manifest, pipeline: Pipeline): void {
  const exported = manifest.columns.map(({ name }) => name)
  const expected = rowColumns(tableOf(pipeline, null, null)).map(({ name }) => name)
  if (exported.join() === expected.join()) return
  throw new ExportError({
    kind: 'config',
    what: 'The pipeline now names other columns than those that were exported',
    where: pipeline.file,
    next: 'Restore transform.columns and extract.include, or export to another load.path.',
  })
}

function unknownQuery(query: string, { file }: Pipeline): ExportError {
  return new ExportError({
    kind: 'config',
    what: `A shard holds rows of ${query} beside those of other queries, and the pipeline no longer has that query`,
    where: file,
    next: 'Put the query back for the load.',
  })
}

function interrupted(cause: unknown): ExportError {
  return new ExportError({
    kind: 'interrupted',
    what: 'The load was stopped; nothing is partly loaded',
    where: '',
    next: 'Load again to continue.',
    cause,
  })
}

/**
 * The statements that create a table in an engine and load the export of a pipeline into it.
 * @param table default: credentials or reports
 * @throws ExportError `config` when the name is empty, or invalid for a load
 */
export function tableStatements(pipeline: Pipeline, dialect: DialectName, table?: string): string {
  const { name, extract, load } = pipeline
  requireNames(dialect === 'postgres' ? 'postgres' : 'duckdb', { schema: null, table: table ?? null })
  const input = {
    pipeline: name,
    resource: kindOfRows(extract.resource),
    table: table ?? kindOfRows(extract.resource),
    columns: columnsOf(pipeline),
    format: load.format,
    path: load.path,
    extension: shardExtension(load.format),
    partitionBy: load.partitionBy,
  }
  return [DIALECTS[dialect](input).trimEnd(), ...tableMounts(dialect, input.table, load.tables)].join('\n\n')
}
