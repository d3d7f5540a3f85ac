import type { ExportError } from '../../core/index.ts'
import { catalogTable, type TableState } from '../../open-tables/index.ts'
import type { WriteOptions } from '../options.ts'
import type { CatalogComparison } from '../settle/catalog.ts'
import type { WritableDataSet } from '../writable-data-set.ts'

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

/** @param rebuild makes them anew @throws ExportError as {@link WritableDataSet.settled} and `updateTables` */
export function bringTables(
  dataSet: WritableDataSet,
  rebuild: boolean,
  options: WriteOptions,
): Promise<BroughtTables> {
  const { catalog } = dataSet.pipeline.load
  let tables: readonly TableState[] = []
  const onTables = (committed: readonly TableState[]): void => {
    tables = committed
  }
  return dataSet.settled({ ...options, rebuild, onTables }, async ({ failure }) => {
    const inLine = failure === null
    const shown = tables.find(({ format }) => format === 'iceberg')?.metadataLocation ?? null
    const told = { metadataLocation: inLine ? shown : null, inLine, problem: null, failure: null }
    const summary = catalog && { table: catalogTable(catalog), ...told }
    return { tables: tables.map(summaryOf), catalog: shown === null ? null : summary, failure }
  })
}

function summaryOf({ format, location, snapshot, shards }: TableState): TableSummary {
  let rows = 0
  for (const shard of shards.values()) rows += shard.rows
  return { format, location, snapshot, rows, files: shards.size }
}
