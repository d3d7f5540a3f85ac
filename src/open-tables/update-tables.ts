import {
  ExportError,
  isExportError,
  nullIf,
  numberOf,
  type OwnedStore,
  type Store,
  TABLE_FORMATS,
  type TableFormat,
} from '../core/index.ts'
import {
  committedByOthers,
  DELTA_FOLDER,
  foreignTable,
  ICEBERG_FOLDER,
  type OpenTable,
  type OwnTableSettings,
  type TableContent,
  type TableMark,
  type TableMarks,
  type TableOwner,
  type TableSettings,
  type TableShard,
  type TableState,
  type TableUpdate,
  type UpdatedTable,
} from './table.ts'

/** The package that writes Avro generates code. */
function neededCode(cause: unknown): never {
  if (!(cause instanceof EvalError)) throw cause
  throw new ExportError({
    kind: 'config',
    what: 'Iceberg tables need code that is generated from strings, which this process may not do',
    where: 'load.table_formats',
    next: 'Start Node.js without --disallow-code-generation-from-strings, or write Delta tables: table_formats: [delta].',
    cause,
  })
}

/** Every format by its name, loaded when a data set has it. A new one is a file and an entry. */
const TABLES: Readonly<Record<TableFormat, () => Promise<OpenTable>>> = {
  iceberg: async () => (await import('./iceberg/iceberg-table.ts').catch(neededCode)).icebergTable,
  delta: async () => (await import('./delta/delta-table.ts')).deltaTable,
}

type TablesUpdate = Pick<TableUpdate, 'statisticsOf' | 'nowMs' | 'warn'> & {
  /** Begins the tables anew, whatever they hold. */
  readonly rebuild: boolean
  /** As they are now. */
  readonly marks: () => TableMarks
  readonly keepMarks: (format: TableFormat, marks: readonly TableMark[]) => Promise<void>
}

type UpdatedTables = {
  readonly states: readonly TableState[]
  /** Removes metadata that others may still point to. */
  removeExpired(): Promise<void>
}

/**
 * At most one snapshot each. A table of an unwanted format goes: its shards may. One that is not as it was written, or of
 * which the state knows nothing, begins anew.
 * @throws ExportError `config`: another's, or other addresses; `storage`: others committed
 */
export async function updateTables(
  store: OwnedStore,
  settings: OwnTableSettings,
  content: TableContent,
  update: TablesUpdate,
): Promise<UpdatedTables> {
  const updated: UpdatedTable[] = []
  const isWanted = (format: TableFormat): boolean => settings.formats.includes(format)
  const names = TABLE_FORMATS.every(isWanted) ? [] : await store.list('')
  for (const format of TABLE_FORMATS) {
    if (!isWanted(format) && !names.includes(FOLDERS[format])) continue
    if (!isWanted(format)) {
      await removeTable(store, settings, format)
      continue
    }
    const { table, isThere } = await ownTable(store, settings, format)
    // Before the first shard there is none.
    if (content.shards.length > 0 || isThere)
      updated.push(
        await updateTable(format, update, (marks, keepMarks) =>
          table.update(store, settings, content, { ...update, marks, keepMarks }),
        ),
      )
  }
  return {
    states: updated.map(({ state }) => state),
    async removeExpired() {
      for (const table of updated) await table.removeExpired()
    },
  }
}

// Each time a write of a former owner came first.
const MAX_ATTEMPTS = 5

async function updateTable(
  format: TableFormat,
  { rebuild, marks, keepMarks }: TablesUpdate,
  attempt: (marks: TableUpdate['marks'], keepMarks: TableUpdate['keepMarks']) => Promise<UpdatedTable | null>,
): Promise<UpdatedTable> {
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
    const known = marks().get(format)
    const updated = await attempt(rebuild ? null : (known ?? null), (news) => keepMarks(format, news))
    if (updated !== null) return updated
    // Another commit came first. If a former owner was about to make it, the marks know it.
    await keepMarks(format, known ?? [])
  }
  throw committedByOthers(FOLDERS[format])
}

/**
 * @param marks null: nothing is known of the tables, so they are taken as they are
 * @throws ExportError `config`: another's, or other addresses; `storage`: others committed; `damaged`
 */
async function readTable(
  store: Store,
  settings: TableSettings,
  format: TableFormat,
  marks: TableMarks | null,
): Promise<TableState | null> {
  const { table } = await ownTable(store, settings, format)
  return table.read(store, settings, marks?.get(format) ?? null)
}

/** @throws ExportError `config`: another's */
async function ownTable(
  store: Store,
  owner: TableOwner,
  format: TableFormat,
): Promise<{ readonly table: OpenTable; readonly isThere: boolean }> {
  const table = await TABLES[format]()
  const isOwn = await table.isOwn(store, owner)
  if (isOwn === false) throw foreignTable(FOLDERS[format])
  return { table, isThere: isOwn === true }
}

/**
 * @param wherever the tables are about to be removed or made anew, so their addresses do not matter
 * @throws ExportError `config` when something else stands in their places, or they name other addresses
 */
export async function requireOwnTables(
  store: Store,
  settings: TableSettings,
  wherever: boolean,
): Promise<void> {
  for (const format of settings.formats) {
    if (wherever) await ownTable(store, settings, format)
    // Where a table cannot be changed, rows can be exported all the same.
    else await readTable(store, settings, format, null).catch(nullIf('storage', 'damaged'))
  }
}

/**
 * Called before a change: files would have to stay for tables that cannot follow.
 * @throws ExportError `config`: another's, or other addresses; `storage`: others committed
 */
export async function requireTablesToFollow(
  store: Store,
  settings: TableSettings,
  marks: TableMarks,
): Promise<void> {
  for (const format of settings.formats)
    await readTable(store, settings, format, marks).catch(nullIf('damaged'))
}

/** Address of the current metadata of the Iceberg table; null: there is none. Does not read it. */
export async function currentMetadata(
  store: Store,
  { root }: Pick<TableSettings, 'root'>,
): Promise<string | null> {
  const { latestVersion } = await import('./iceberg/metadata.ts')
  const latest = await latestVersion(store)
  return latest === null ? null : `${root}/${latest.path}`
}

/** Whether a data set with these names in its folder may have tables. */
export function mayHaveTables(names: readonly string[]): boolean {
  return names.includes(ICEBERG_FOLDER) || names.includes(DELTA_FOLDER)
}

/** Removes the tables of a data set that starts over, and no other. */
export async function removeTables(store: OwnedStore, owner: TableOwner): Promise<void> {
  for (const format of TABLE_FORMATS) await removeTable(store, owner, format)
}

async function removeTable(store: OwnedStore, owner: TableOwner, format: TableFormat): Promise<void> {
  const table = await TABLES[format]()
  if ((await table.isOwn(store, owner)) === true) await table.remove(store)
}

/** How the current snapshot of a table differs from the manifest. */
type TableProblem = {
  readonly path: string
  readonly problem: string
  /** What a person has to do; absent: any command that changes the data set mends it. */
  readonly next?: string
}

/** @param marks null: nothing is known of the tables, so that their shards alone are compared */
export async function tableProblems(
  store: Store,
  settings: TableSettings,
  shards: readonly TableShard[],
  marks: TableMarks | null,
): Promise<readonly TableProblem[]> {
  const problems: TableProblem[] = []
  for (const format of settings.formats) {
    const path = FOLDERS[format]
    try {
      const state = await readTable(store, settings, format, marks)
      // Before the first shard there is no table.
      const isMissing = state === null && shards.length > 0
      const problem = isMissing ? 'is not there' : differenceOf(state?.shards ?? new Map(), shards)
      if (problem !== null) problems.push({ path, problem })
    } catch (error) {
      if (!isExportError(error)) throw error
      const { where: path, what: problem, kind, next } = error
      problems.push({ path, problem, ...(kind === 'damaged' ? {} : { next }) })
    }
  }
  return problems
}

const FOLDERS: Readonly<Record<TableFormat, string>> = { iceberg: ICEBERG_FOLDER, delta: DELTA_FOLDER }

function differenceOf(
  inTable: ReadonlyMap<string, TableShard>,
  inManifest: readonly TableShard[],
): string | null {
  const left = new Map(inTable)
  let missing = 0
  let other = 0
  for (const { path, sha256 } of inManifest) {
    const found = left.get(path)
    left.delete(path)
    if (found === undefined) missing++
    else if (found.sha256 !== sha256) other++
  }
  const parts = [
    ...(missing > 0 ? [`lacks ${numberOf(missing, 'shard')} of the manifest`] : []),
    ...(left.size > 0 ? [`names ${numberOf(left.size, 'shard')} that the manifest does not list`] : []),
    ...(other > 0 ? [`describes ${numberOf(other, 'shard')} in another way than the manifest`] : []),
  ]
  return parts.length === 0 ? null : parts.join('; ')
}
