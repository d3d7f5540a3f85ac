import { type CatalogSettings, type ErrorKind, ExportError } from '../../core/index.ts'
import { type CatalogDeps, catalogTable } from '../table.ts'
import { type CatalogTable, RestCatalog } from './rest-catalog.ts'

/** The Iceberg table of a data set, by its `table-uuid` and the address of its current metadata. */
type OwnTable = { readonly uuid: string; readonly metadataLocation: string }

/** A table may be changed between two looks at it, but not for ever. */
const MAX_LOOKS = 4

/**
 * Makes the catalog show the current metadata. Each change is followed by another look: a response may be lost.
 * @throws CatalogError `config`: another's table, not touched; `refused`: not repointed; and as `JsonRequests.send`
 */
export function showTable(settings: CatalogSettings, deps: CatalogDeps, own: OwnTable): Promise<void> {
  return RestCatalog.with(settings, deps, async (catalog) => {
    let tried = { overwrite: false, refusal: null as string | null }
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      const found = await catalog.table()
      if (found !== null) requireOwnTable(settings, found, own.uuid)
      if (shows(found, own.metadataLocation)) return
      const overwrite = found !== null
      if (tried.refusal !== null && tried.overwrite === overwrite) break
      if (!overwrite) await catalog.makeNamespace()
      const refusal = await catalog.register(own.metadataLocation, overwrite)
      tried = { overwrite, refusal: refusal === null ? null : refusal.text }
    }
    throw notShown(
      settings,
      tried.overwrite,
      tried.refusal ?? 'The catalog accepts a change and does not make it',
    )
  })
}

/** How the catalog shows the table; null: not at all. */
export function lookUpTable(settings: CatalogSettings, deps: CatalogDeps): Promise<CatalogTable | null> {
  return RestCatalog.with(settings, deps, (catalog) => catalog.table())
}

/** @param uuid null: of a data set whose state cannot be read @throws CatalogError as {@link showTable} */
export function dropTable(settings: CatalogSettings, deps: CatalogDeps, uuid: string | null): Promise<void> {
  return RestCatalog.with(settings, deps, async (catalog) => {
    const found = await catalog.table()
    if (found === null) return
    requireOwnTable(settings, found, uuid)
    await catalog.drop()
  })
}

/** @throws CatalogError `config` when it is another's */
export function requireOwnTable(settings: CatalogSettings, { uuid }: CatalogTable, own: string | null): void {
  if (uuid !== null && uuid.toLowerCase() === own?.toLowerCase()) return
  throw catalogError(
    'config',
    `The table ${catalogTable(settings)} in the catalog is another's (table-uuid ${uuid ?? 'unknown'})`,
    'Choose another load.catalog.table or namespace, or drop that table there without purging its files; it was not touched.',
  )
}

/** Whether a table shows this metadata. Some catalogs write the scheme of an address in another way. */
export function shows(found: CatalogTable | null, metadataLocation: string): boolean {
  return found !== null && normal(found.metadataLocation ?? '') === normal(metadataLocation)
}

function normal(address: string): string {
  return address.replace(/^s3[an]:/, 's3:').replace(/^file:\/*/, 'file:///')
}

function notShown(settings: CatalogSettings, overwrite: boolean, why: string): ExportError {
  const name = catalogTable(settings)
  if (!overwrite)
    return catalogError('refused', `The catalog does not register ${name}: ${why}`, 'Correct what it names.')
  return catalogError(
    'refused',
    `The catalog does not repoint ${name}: ${why}`,
    `It may not know \`overwrite\` of register: then drop the table there without purging its files (DELETE …/tables/${settings.table}?purgeRequested=false), and run the next command, which registers it.`,
  )
}

function catalogError(kind: ErrorKind, what: string, next: string): ExportError {
  return new ExportError({ kind, what, where: 'load.catalog', next })
}
