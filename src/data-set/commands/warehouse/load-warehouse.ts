import {
  type Clock,
  ExportError,
  isExportError,
  kindOfRows,
  locationOf,
  nullIf,
  type Pipeline,
  plainError,
  rulesOf,
  type Store,
} from '../../../core/index.ts'
import { shardExtension } from '../../../load/index.ts'
import { columnsOf, schemaOf, withSchema, withSchemas } from '../../../rows/index.ts'
import {
  MANIFEST_PATH,
  type Manifest,
  parseManifest,
  readManifest,
  schemaFromJson,
  usedSchemas,
} from '../../../state/index.ts'
import {
  type DdlInput,
  DIALECT_NAMES,
  DIALECTS,
  type DialectName,
  DuckdbWarehouse,
  type LoadMode,
  type LoadResult,
  loadDataSet,
  PostgresWarehouse,
  requireLoadable,
  requireNames,
  shardRows,
  type Target,
  type TargetWait,
  tableMounts,
  tableOf,
  type Warehouse,
} from '../../../warehouse/index.ts'
import type { DataSet } from '../../data-set.ts'
import { nothingExported, openStore } from '../../open-store.ts'
import { rememberFailedLoad, rememberLoad } from './loaded.ts'
import { localShards } from './local-shards.ts'

export type LoadOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  readonly schema: string | null
  /** null: named after what is exported. */
  readonly table: string | null
  readonly mode: LoadMode
  readonly evolve: boolean
  /** The id of the data set that this one takes the place of in the table; null: none. */
  readonly supersede: string | null
  /** Called once when another process holds the target. */
  readonly onWait: (wait: TargetWait) => void
  readonly onShard: (path: string, number: number, of: number) => void
}

export type LoadSummary = LoadResult & {
  readonly target: string
  readonly table: string
  readonly durationMs: number
}

/**
 * @throws ExportError `config` when nothing is exported, a name is invalid or the table does not fit; `target` when the
 *   database fails, or the table has rows that the ledger does not list; `credentials`; `locked`; `damaged`
 */
export async function loadWarehouse(
  dataSet: DataSet,
  target: Target,
  options: LoadOptions,
): Promise<LoadSummary> {
  try {
    return await load(dataSet, target, options)
  } catch (error) {
    if (!isExportError(error)) throw error
    const { name } = tableOf(dataSet.pipeline, options.schema, options.table)
    const at = new Date(options.clock.now()).toISOString()
    const note = { target: target.label, table: name, at, error: plainError(error) }
    await rememberFailedLoad(dataSet.store, note)
    throw error
  }
}

async function load(
  { pipeline, store }: DataSet,
  target: Target,
  options: LoadOptions,
): Promise<LoadSummary> {
  const { clock, stop, mode, evolve, supersede, onShard } = options
  requireNames(target.kind, options)
  const startedMs = clock.monotonicMs()
  const manifestNow = manifestReader(store, pipeline)
  // Without one there is nothing to connect for.
  let manifest = await manifestNow()
  const table = tableOf(pipeline, options.schema, options.table)
  const warehouse = await openTarget(target, options)
  const shards = await localShards(pipeline, store, stop)
  const loadedAt = new Date(clock.now()).toISOString()
  try {
    const { transform, load } = pipeline
    const source = { root: shards.root, format: load.format, isMixed: transform.lacking.length > 0 }
    const result = await loadDataSet(warehouse, {
      shards,
      manifest: async () => {
        manifest = await manifestNow()
        return manifest
      },
      table,
      mode,
      evolve,
      supersede,
      loadedAt,
      rowsOf: (dataSet, some) => shardRows(source, dataSet, table, some),
      stop,
      onShard,
    })
    const loaded = { target: target.label, table: table.name }
    await rememberLoad(store, manifest, { ...loaded, loaded_at: loadedAt })
    const durationMs = Math.round(clock.monotonicMs() - startedMs)
    return { ...result, ...loaded, durationMs }
  } catch (error) {
    // An aborted load shows as a connection that ended.
    if (!stop.aborted) throw error
    throw new ExportError({
      kind: 'interrupted',
      what: 'The load was stopped; nothing is partly loaded',
      where: '',
      next: 'Load again to continue.',
      cause: error,
    })
  } finally {
    await warehouse.close()
    await shards.close()
  }
}

/** Looks before an export whether the table would take its rows. @param isNew whether another data set begins */
export async function requireTable(
  pipeline: Pipeline,
  target: Target,
  { isNew, stop, ...flags }: Pick<LoadOptions, 'evolve' | 'supersede' | 'stop'> & { readonly isNew: boolean },
): Promise<void> {
  const warehouse =
    target.kind === 'duckdb'
      ? await DuckdbWarehouse.openToRead(target.file)
      : await PostgresWarehouse.connect(target.url, target.label, { stop, onWait: () => {} })
  if (warehouse === null) return
  try {
    const manifest = isNew ? null : await readManifest(openStore(pipeline)).catch(nullIf('damaged'))
    const { data_set_id: id = '', schema_settings = [], shards = [] } = manifest ?? {}
    const used = usedSchemas(schema_settings.map(schemaFromJson), shards)
    const table = tableOf(withSchemas(pipeline, [...used, schemaOf(pipeline)]), null, null)
    await requireLoadable(warehouse, { dataSet: { id, pipeline: pipeline.name }, table, ...flags })
  } finally {
    await warehouse.close()
  }
}

/** Reads the manifest each time it is called, and parses it when it has changed. */
function manifestReader(store: Store, pipeline: Pipeline): () => Promise<Manifest> {
  let last: { readonly bytes: Uint8Array; readonly manifest: Manifest } | null = null
  return async () => {
    const bytes = await store.read(MANIFEST_PATH)
    if (bytes === null) throw nothingExported(pipeline)
    if (last === null || Buffer.compare(bytes, last.bytes) !== 0) {
      last = { bytes, manifest: parseManifest(bytes) }
      requireKnownColumns(last.manifest, pipeline)
    }
    return last.manifest
  }
}

/** The ledger would take a shard for loaded whose new column never came. */
function requireKnownColumns(manifest: Manifest, pipeline: Pipeline): void {
  const known = pipeline.transform.columns
  const added = manifest.columns.flatMap(({ name }) => (known.includes(name) ? [] : [name]))
  if (added.length === 0) return
  throw new ExportError({
    kind: 'locked',
    what: `The data set has got further columns meanwhile: ${added.join(', ')}`,
    where: MANIFEST_PATH,
    next: 'Load again; what is loaded stays.',
  })
}

function openTarget(target: Target, options: LoadOptions): Promise<Warehouse> {
  switch (target.kind) {
    case 'duckdb':
      return DuckdbWarehouse.open(target.file, options)
    case 'postgres':
      return PostgresWarehouse.connect(target.url, target.label, options)
  }
}

/** @param table default: credentials or reports @throws ExportError `config` when it is empty, or invalid for a load */
export function tableStatements({ pipeline }: DataSet, dialect: DialectName, table?: string): string {
  requireNames(dialect === 'postgres' ? 'postgres' : 'duckdb', { schema: null, table: table ?? null })
  const input = ddlInput(pipeline, table)
  const { tables } = pipeline.load
  const text = located(pipeline, () => DIALECTS[dialect].statements(input))
  return [text.trimEnd(), ...tableMounts(dialect, input.table, tables)].join('\n\n')
}

/** Rows of shards that the manifest does not list go. @throws ExportError `config`, also if the engine has no script */
export async function syncStatements(
  dataSet: DataSet,
  dialect: DialectName,
  table?: string,
): Promise<string> {
  requireNames('duckdb', { schema: null, table: table ?? null })
  const { sync } = DIALECTS[dialect]
  if (sync === undefined)
    throw new ExportError({
      kind: 'config',
      what: `There is no script that keeps a table of ${dialect} in line with the data set`,
      where: '--sync',
      next:
        dialect === 'postgres'
          ? '`spillway load` does that for PostgreSQL.'
          : `Leave it out: its tables read the files as they are. It is for ${DIALECT_NAMES.filter((name) => DIALECTS[name].sync !== undefined).join(', ')}.`,
    })
  const { pipeline } = dataSet
  return dataSet.reading(async (manifest) => {
    const schemas = manifest.schema_settings.map((each) =>
      columnsOf(withSchema(pipeline, schemaFromJson(each))),
    )
    return located(pipeline, () => sync({ ...ddlInput(pipeline, table), manifest, schemas }))
  })
}

/** @throws ExportError that names the line of the setting that a dialect refuses */
function located(pipeline: Pipeline, write: () => string): string {
  try {
    return write()
  } catch (error) {
    if (!isExportError(error, 'config') || pipeline.locations[error.where] === undefined) throw error
    const where = `${error.where}, ${locationOf(pipeline, error.where)}`
    throw new ExportError({ ...plainError(error), where })
  }
}

function ddlInput(pipeline: Pipeline, table?: string): DdlInput {
  const { name, extract, transform, load } = pipeline
  const columns = columnsOf(pipeline)
  return {
    pipeline: name,
    resource: kindOfRows(extract.resource),
    table: table ?? kindOfRows(extract.resource),
    columns,
    added: columns.filter((column) => transform.lacking.includes(column.name)),
    format: load.format,
    path: load.path,
    extension: shardExtension(load.format),
    partitionBy: rulesOf(extract.resource).reading === 'list' ? [] : load.partitionBy,
  }
}
