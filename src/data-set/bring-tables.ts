import type { Pipeline } from '../core/index.ts'
import type { TableState } from '../open-tables/index.ts'
import { MANIFEST_PATH } from '../state/index.ts'
import { refuseLinks } from './files.ts'
import { readBegunCheckpoint } from './open-checkpoint.ts'
import { type HoldOptions, holdDataSet, namingLocations, noManifest, openDataSet } from './open-data-set.ts'
import { requireOwnTables, type TableOptions, updateTables } from './table-formats.ts'

export type TablesOptions = HoldOptions & Pick<TableOptions, 'onLog' | 'rebuild'>

/** A table over the shards, as it is after the command. */
export type TableSummary = {
  readonly format: TableState['format']
  readonly location: string
  readonly snapshot: number
  readonly rows: number
  readonly files: number
}

/**
 * Brings the tables of a data set in line with its manifest. Sends no request to the service.
 * @throws ExportError `config` when nothing is exported, or another program's table is in the way, `locked` during a
 *   run, and as `updateTables`
 */
export function bringTables(pipeline: Pipeline, options: TablesOptions): Promise<readonly TableSummary[]> {
  return namingLocations(pipeline, async () => {
    // Before the lock, which would create the folder, also if there is no data set.
    if ((await openDataSet(pipeline).size(MANIFEST_PATH)) === null)
      throw noManifest(pipeline, 'make tables of')
    return holdDataSet(pipeline, options, async ({ store }) => {
      await refuseLinks(store)
      await requireOwnTables(pipeline, store, options.rebuild === true)
      const state = await readBegunCheckpoint(pipeline, store)
      if (state === null) throw noManifest(pipeline, 'make tables of')
      return (await updateTables(pipeline, store, options)).map(summaryOf)
    })
  })
}

function summaryOf({ format, location, snapshot, shards }: TableState): TableSummary {
  let rows = 0
  for (const shard of shards.values()) rows += shard.rows
  return { format, location, snapshot, rows, files: shards.size }
}
