import { getOrInsert, type OwnedStore, type Pipeline, type Store } from '../../core/index.ts'
import {
  mayHaveTables,
  type RestCatalog,
  requireOwnTables as requireOwn,
  type TableState,
  updateTables as updateAll,
} from '../../open-tables/index.ts'
import { columnsOf } from '../../rows/index.ts'
import { asExported, type Journal, MANIFEST_PATH, manifestDigest, manifestShard } from '../../state/index.ts'
import { tableOwner } from '../open/find-state.ts'
import type { WriteOptions } from '../options.ts'
import { readShard, type ShardFile } from '../read-shard.ts'
import { ofCatalog } from './catalog.ts'

export type TableOptions = Pick<WriteOptions, 'clock' | 'onLog'> & {
  /** As the command has opened it; null: none. */
  readonly catalog?: RestCatalog | null
  /** Of the run that changed shards; default: another command did. */
  readonly runId?: string
  /** Makes the tables anew, for readers that see the data set at another address. Default: false. */
  readonly rebuild?: boolean
  /** Called when they are in line, before the catalog is told. */
  readonly onTables?: (tables: readonly TableState[]) => void
}

/**
 * Call it after the manifest is written, and before files of shards that it no longer lists are removed: whoever reads a
 * current snapshot finds every shard. Metadata that the catalog still points to stays until it has moved on.
 * @throws ExportError `config` for another program's table or other addresses, `storage` if another program committed,
 *   `damaged`; CatalogError when the catalog does not follow
 */
export async function updateTables(
  pipeline: Pipeline,
  store: OwnedStore,
  journal: Journal,
  { onLog, runId, rebuild = false, clock, catalog = null, onTables }: TableOptions,
): Promise<void> {
  const { load } = pipeline
  // In a bucket each request costs.
  if (load.tables.formats.length === 0 && !mayHaveTables(await store.list(''))) return
  const bytes = await store.read(MANIFEST_PATH)
  if (bytes === null) return
  const { state } = journal
  const dataSetId = state.header.data_set_id
  const columns = columnsOf(asExported(pipeline, state))
  const shards = Array.from(state.shards, manifestShard).sort((a, b) => (a.path < b.path ? -1 : 1))
  const last = state.erasures.at(-1)
  const forgottenMs = last === undefined ? null : Date.parse(last.at)
  const manifestSha256 = manifestDigest(bytes)
  // Loaded only here: most commands read no footers.
  const { readStatistics } = await import('../../load/inspect/index.ts')
  // Of a footer nothing else is read.
  const read = (shard: ShardFile) => readShard(store, shard, (reader) => readStatistics(reader, columns), 0)
  const known = new Map<string, ReturnType<typeof read>>()
  const readOnce = (shard: ShardFile) => getOrInsert(known, shard.path, () => read(shard))
  const { states, removeExpired } = await updateAll(
    store,
    { ...load.tables, dataSetId },
    { columns, shards, manifestSha256, forgottenMs, runId: runId ?? null },
    {
      statisticsOf: load.tables.formats.length > 1 ? readOnce : read,
      nowMs: clock.now(),
      rebuild,
      marks: () => state.tables,
      keepMarks: (format, marks) => journal.append([{ kind: 'table', format, marks }]),
      warn: (message) => onLog('warn', message),
    },
  )
  onTables?.(states)
  const shown = states.find(({ format }) => format === 'iceberg')?.metadataLocation ?? null
  if (catalog !== null && shown !== null) await ofCatalog(catalog.show(dataSetId, shown))
  await removeExpired()
}

/**
 * @param wherever the tables are about to be removed or made anew, so their addresses do not matter
 * @throws ExportError `config` when something else stands in their places, or they name other addresses
 */
export async function requireOwnTables(pipeline: Pipeline, store: Store, wherever: boolean): Promise<void> {
  const { tables } = pipeline.load
  if (tables.formats.length > 0)
    await requireOwn(store, { ...tables, ...(await tableOwner(store)) }, wherever)
}
