import { type ExportError, inSnakeCase, isExportError, type Pipeline, systemClock } from '../../core/index.ts'
import { type CatalogComparison, compareCatalog } from '../../data-set/index.ts'
import { catalogTable } from '../../open-tables/index.ts'
import { catalogVariables, readSecret } from '../../pipeline/index.ts'
import type { Io } from '../command-line/command.ts'
import { untilStopped } from '../terminal/signals.ts'
import { plainLine } from '../terminal/text.ts'

/** The catalog of a pipeline, as it is now; null: it has none. */
export async function comparedCatalog(pipeline: Pipeline, io: Io): Promise<CatalogComparison | null> {
  const { catalog } = pipeline.load
  if (catalog === null) return null
  const name = await unsetVariable(pipeline, io)
  if (name !== null) {
    const problem = `not compared: ${name} is not set`
    return { table: catalogTable(catalog), metadataLocation: null, inLine: null, problem, failure: null }
  }
  return untilStopped(io, ({ stop }) =>
    compareCatalog(pipeline, { clock: systemClock, readSecret: (name) => readSecret(name, io.env), stop }),
  )
}

/** A variable that the catalog needs and that is not set; null: none. */
export async function unsetVariable({ load }: Pipeline, { env }: Io): Promise<string | null> {
  for (const name of catalogVariables(load.catalog)) if ((await readSecret(name, env)) === null) return name
  return null
}

export function catalogJson({ table, metadataLocation, inLine }: CatalogComparison) {
  return inSnakeCase({ table, metadataLocation, inLine })
}

export function catalogText(catalog: CatalogComparison): string {
  const { table, metadataLocation, inLine, problem, failure } = catalog
  if (inLine === true)
    return `catalog: ${table} in line${metadataLocation === null ? '' : `, ${plainLine(metadataLocation)}`}`
  if (inLine === null) return `catalog: ${table} ${plainLine(problem ?? '')}`
  const remedy = remedyOf(failure) ?? '`tables` brings it in line'
  return `catalog: ${table} ${failure === null ? 'BEHIND' : 'NOT KNOWN'}${problem === null ? '' : `: ${plainLine(problem)}`}; ${remedy}`
}

/** What a person has to change before any command can bring the catalog in line; null: nothing. */
export function remedyOf(failure: ExportError | null): string | null {
  return isExportError(failure, 'config', 'credentials', 'refused', 'data') ? plainLine(failure.next) : null
}
