import type { ExportError, Pipeline } from '../../core/index.ts'
import { catalogTable, type TableState } from '../../open-tables/index.ts'
import { MANIFEST_PATH } from '../../state/index.ts'
import { type ChangeOptions, holdSettled } from '../hold.ts'
import { type HoldOptions, namingLocations, nothingExported, openStore } from '../open-store.ts'
import { namePipeline } from '../queries.ts'
import type { CatalogComparison } from '../settle/catalog.ts'
import type { TableOptions } from '../settle/update-tables.ts'

type TablesOptions = HoldOptions & ChangeOptions & Pick<TableOptions, 'rebuild'>

export type TableSummary = {
  readonly format: TableState['format']
  readonly location: string
  readonly snapshot: number
  readonly rows: number
  readonly files: number
}

type BroughtTables = {
  readonly tables: readonly TableSummary[]
  /** null: the pipeline has none, or there is no table yet. */
  readonly catalog: CatalogComparison | null
  /** Why the catalog is not in line; null: it is. */
  readonly failure: ExportError | null
}

/** @throws ExportError `config` when nothing is exported, `locked` during a run, and as `updateTables` */
export function bringTables(given: Pipeline, options: TablesOptions): Promise<BroughtTables> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    // Before the lock, which would create the folder, also if there is no data set.
    if ((await openStore(pipeline).size(MANIFEST_PATH)) === null) throw nothingExported(pipeline)
    const { catalog } = pipeline.load
    let tables: readonly TableState[] = []
    const onTables = (committed: readonly TableState[]): void => {
      tables = committed
    }
    return holdSettled(pipeline, { ...options, onTables }, async (_store, failure) => {
      const inLine = failure === null
      const shown = tables.find(({ format }) => format === 'iceberg')?.metadataLocation ?? null
      const told = { metadataLocation: inLine ? shown : null, inLine, problem: null, failure: null }
      const summary = catalog && { table: catalogTable(catalog), ...told }
      return { tables: tables.map(summaryOf), catalog: shown === null ? null : summary, failure }
    })
  })
}

function summaryOf({ format, location, snapshot, shards }: TableState): TableSummary {
  let rows = 0
  for (const shard of shards.values()) rows += shard.rows
  return { format, location, snapshot, rows, files: shards.size }
}
