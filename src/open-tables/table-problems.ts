import { isExportError, numberOf, type Store, type TableFormat, type TableSettings } from '../core/index.ts'
import { DELTA_FOLDER } from './delta/delta-log.ts'
import { ICEBERG_FOLDER } from './iceberg/metadata.ts'
import type { TableShard } from './table.ts'
import { TABLES } from './update-tables.ts'

/** How the current snapshot of a table differs from the manifest. */
export type TableProblem = { readonly path: string; readonly problem: string }

/** Compares tables with what the manifest lists. */
export async function tableProblems(
  store: Store,
  settings: TableSettings,
  shards: readonly TableShard[],
): Promise<readonly TableProblem[]> {
  const problems: TableProblem[] = []
  for (const format of settings.formats) {
    const path = FOLDERS[format]
    try {
      const state = await TABLES[format].read(store, settings)
      // Before the first shard there is no table.
      const problem =
        state === null && shards.length > 0
          ? 'is not there'
          : differenceOf(state?.shards ?? new Map(), shards)
      if (problem !== null) problems.push({ path, problem })
    } catch (error) {
      if (!isExportError(error)) throw error
      problems.push({ path: error.where, problem: error.what })
    }
  }
  return problems
}

const FOLDERS: Readonly<Record<TableFormat, string>> = { iceberg: ICEBERG_FOLDER, delta: DELTA_FOLDER }

/** null: none */
function differenceOf(
  inTable: ReadonlyMap<string, TableShard>,
  inManifest: readonly TableShard[],
): string | null {
  const left = new Map(inTable)
  let missing = 0
  let other = 0
  for (const { path, sha256, rows, bytes } of inManifest) {
    const found = left.get(path)
    left.delete(path)
    if (found === undefined) missing++
    else if (found.sha256 !== sha256 || found.rows !== rows || found.bytes !== bytes) other++
  }
  const parts = [
    ...(missing > 0 ? [`lacks ${numberOf(missing, 'shard')} of the manifest`] : []),
    ...(left.size > 0 ? [`names ${numberOf(left.size, 'shard')} that the manifest does not list`] : []),
    ...(other > 0 ? [`describes ${numberOf(other, 'shard')} in another way than the manifest`] : []),
  ]
  return parts.length === 0 ? null : parts.join('; ')
}
