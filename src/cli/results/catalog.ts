import { inSnakeCase, isExportError, type Pipeline, systemClock } from '../../core/index.ts'
import { type CatalogComparison, type CatalogSummary, compareCatalog } from '../../data-set/index.ts'
import { readSecret } from '../../pipeline/index.ts'
import type { Io } from '../command-line/command.ts'
import { untilStopped } from '../terminal/signals.ts'
import { plainLine } from '../terminal/text.ts'

/** The catalog of a pipeline, as it is now; null: it has none. */
export async function comparedCatalog(pipeline: Pipeline, io: Io): Promise<CatalogComparison | null> {
  if (pipeline.load.catalog === null) return null
  return untilStopped(io, ({ stop }) =>
    compareCatalog(pipeline, { clock: systemClock, readSecret: (name) => readSecret(name, io.env), stop }),
  )
}

export function catalogJson({ table, metadataLocation, inLine }: CatalogSummary | CatalogComparison) {
  return inSnakeCase({ table, metadataLocation, inLine })
}

export function catalogText(catalog: CatalogSummary | CatalogComparison): string {
  const { table, metadataLocation, inLine } = catalog
  const problem = 'problem' in catalog ? catalog.problem : null
  if (inLine === true)
    return `catalog: ${table} in line${metadataLocation === null ? '' : `, ${plainLine(metadataLocation)}`}`
  if (inLine === null) return `catalog: ${table} ${plainLine(problem ?? '')}`
  const remedy = ('failure' in catalog && catalogRemedy(catalog)) || '`tables` brings it in line'
  return `catalog: ${table} BEHIND${problem === null ? '' : `: ${plainLine(problem)}`}; ${remedy}`
}

/** What a person has to change before any command can bring the catalog in line; null: nothing. */
export function catalogRemedy({ failure }: CatalogComparison): string | null {
  return isExportError(failure, 'config', 'credentials') ? plainLine(failure.next) : null
}
