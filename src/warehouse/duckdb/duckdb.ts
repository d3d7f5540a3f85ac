import type { DuckDBConnection } from '@duckdb/node-api'
import { type Clock, ExportError, isExportError } from '../../core/index.ts'
import type { ManifestShard } from '../../state/index.ts'
import { addedRows, addedTable, forgetAdded } from '../table/added-rows.ts'
import {
  type FoundColumn,
  prepareTable,
  type RelationKind,
  type TableMaker,
  transaction,
} from '../table/prepare-table.ts'
import { columnList } from '../table/shard-rows.ts'
import {
  DATA_SET_COLUMN,
  DUCKDB_TYPES,
  LEDGER,
  literal,
  PARTITION_COLUMN,
  qualified,
  type TableSpec,
} from '../table/table.ts'
import {
  type Account,
  accountOf,
  type DataSet,
  type Loaded,
  type LoadedRows,
  type LoadTarget,
  type LoadUnit,
  requireWhole,
  takeReplaced,
  type Warehouse,
} from '../table/warehouse.ts'
import {
  ERRORS_WITH_CODES,
  guarded,
  type OpenedFile,
  openDuckdbFile,
  type TargetWait,
} from './duckdb-file.ts'

type DuckdbOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  /** Called once when another process has the file open, with what is known of that process. */
  readonly onWait: (wait: TargetWait) => void
  /** Threads of DuckDB; null: one a processor. */
  readonly threads: number | null
}

const DUCKDB_PACKAGE = '@duckdb/node-api'

/** Whether an error says that DuckDB was left out when spillway was installed. */
export function lacksDuckdb(error: unknown): boolean {
  return isExportError(error, 'config') && error.where === DUCKDB_PACKAGE
}

/**
 * DuckDB in this process. Loaded where it is needed only: it is an optional dependency of some 70 MB.
 * @throws ExportError `config` when it is not installed
 */
export async function loadDuckdb(): Promise<typeof import('@duckdb/node-api')> {
  try {
    return await import('@duckdb/node-api')
  } catch (cause) {
    throw new ExportError({
      kind: 'config',
      what: 'This needs DuckDB, which is not installed',
      where: DUCKDB_PACKAGE,
      next: 'Install spillway without --omit=optional, or add the package: npm install @duckdb/node-api@1.5.5-r.5',
      cause,
    })
  }
}

/** A DuckDB file as a warehouse. */
export class DuckdbWarehouse implements Warehouse {
  readonly #file: string
  readonly #opened: OpenedFile
  readonly #connection: DuckDBConnection

  private constructor(file: string, opened: OpenedFile, connection: DuckDBConnection) {
    this.#file = file
    this.#opened = opened
    this.#connection = connection
  }

  /**
   * Opens the file; made, for its owner alone, if it is not there. Waits while another process has it open.
   * @throws ExportError `locked` when that takes too long
   */
  static async open(file: string, options: DuckdbOptions): Promise<DuckdbWarehouse> {
    const { DuckDBInstance } = await loadDuckdb()
    const opened = await openDuckdbFile(
      file,
      (path) => DuckDBInstance.create(path, duckdbSettings(options.threads)),
      options,
    )
    const connection = await guarded(file, () => opened.instance.connect())
    const warehouse = new DuckdbWarehouse(file, opened, connection)
    await warehouse.#run("SET TimeZone = 'UTC'")
    return warehouse
  }

  // The open file is locked already. Names are case-insensitive in DuckDB.
  async hold(table: TableSpec): Promise<TableSpec> {
    const given = table.schema === null ? 'current_schema()' : literal(table.schema)
    const [schema] = await this.#query(
      `SELECT schema_name AS name FROM duckdb_schemas() WHERE database_name = current_database() AND lower(schema_name) = lower(${given})`,
    )
    const schemaName = schema === undefined ? table.schema : String(schema.name)
    const [found] = await this.#query(
      `SELECT table_name AS name FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = ${literal(schemaName ?? '')} AND lower(table_name) = lower(${literal(table.name)})`,
    )
    const [{ catalog } = {}] = await this.#query('SELECT current_database() AS catalog')
    return {
      ...table,
      catalog: String(catalog),
      schema: schemaName,
      name: found === undefined ? table.name : String(found.name),
    }
  }

  prepare(table: TableSpec, options: { readonly evolve: boolean }): Promise<void> {
    const maker: TableMaker = {
      run: this.#run,
      hasSchema: async (name) =>
        (
          await this.#query(
            `SELECT 1 FROM duckdb_schemas() WHERE database_name = current_database() AND schema_name = ${literal(name)}`,
          )
        ).length > 0,
      findColumns: (one) => findColumns(this.#connection, this.#file, one),
      kindOf: async (name) => {
        const where = `WHERE database_name = current_database() AND schema_name = ${literal(table.schema ?? '')} AND lower`
        const [found] = await this.#query(
          `SELECT 'table' AS kind FROM duckdb_tables() ${where}(table_name) = lower(${literal(name)}) UNION ALL SELECT 'view' FROM duckdb_views() ${where}(view_name) = lower(${literal(name)})`,
        )
        return (found?.kind ?? null) as RelationKind
      },
      makeView: async (name, select) => {
        await this.#run(`CREATE OR REPLACE VIEW ${name} AS ${select}`)
      },
      types: DUCKDB_TYPES,
      remark: null,
      ledgerKey: '',
    }
    return transaction(this.#run, () => prepareTable(maker, table, options))
  }

  account(dataSet: DataSet, table: TableSpec): Promise<Account> {
    return accountOf(this.#query, dataSet, table)
  }

  async loaded(
    dataSet: string,
    table: TableSpec,
    about: readonly ManifestShard[] | null,
  ): Promise<readonly Loaded[]> {
    const ledger = `SELECT shard, sha256, partitions, rows::DOUBLE AS rows FROM ${qualified(table, LEDGER)} WHERE data_set = ${literal(dataSet)} AND table_name = ${literal(table.name)}`
    const found: unknown[] = []
    for (const condition of conditionsAbout(about)) {
      // One by one: a spread of 100,000 arguments overflows the stack.
      for (const row of await this.#query(`${ledger} AND ${condition}`)) found.push(row)
    }
    return found as readonly Loaded[]
  }

  async load({ shards, stale, forgotten }: LoadUnit, target: LoadTarget): Promise<LoadedRows> {
    const { dataSet, table } = target
    const mine = `data_set = ${literal(dataSet.id)} AND table_name = ${literal(table.name)}`
    let rows = 0
    await transaction(this.#run, async () => {
      for (const keys of slices(stale))
        await this.#run(
          `DELETE FROM ${qualified(table, table.name)} WHERE ${DATA_SET_COLUMN.name} = ${literal(dataSet.id)} AND ${PARTITION_COLUMN.name} IN (${keys})`,
        )
      for (const paths of slices(forgotten))
        await this.#run(`DELETE FROM ${qualified(table, LEDGER)} WHERE ${mine} AND shard IN (${paths})`)
      for (const shard of shards) {
        await this.#insert(shard, target)
        rows += shard.rows
      }
    })
    return { rows, replacedTexts: 0 }
  }

  async setAdded(
    shards: AsyncIterable<ManifestShard>,
    { dataSet, table, rowsOf }: LoadTarget,
  ): Promise<void> {
    const added = addedTable(table)
    await transaction(this.#run, async () => {
      await this.#run(forgetAdded(dataSet, table))
      for await (const shard of shards) {
        const { setup, select } = addedRows(dataSet, table, rowsOf(shard))
        for (const sql of setup) await this.#run(sql)
        const into = `${qualified(added, added.name)} (${columnList(added)})`
        requireWhole(shard, await this.#run(`INSERT INTO ${into} ${select}`))
      }
    })
  }

  // No indexes: DuckDB skips row groups by their min/max statistics.
  async finish(): Promise<void> {}

  async close(): Promise<void> {
    this.#connection.closeSync()
    await this.#opened.close()
  }

  /** Inserts the rows of a shard, and its ledger entry. */
  async #insert(shard: ManifestShard, { dataSet, table, mode, loadedAt, rowsOf }: LoadTarget): Promise<void> {
    const into = qualified(table, table.name)
    const { setup, select } = rowsOf(shard)
    for (const sql of setup) await this.#run(sql)
    const columns = columnList(table)
    let replaced = 0
    if (mode === 'upsert') {
      await this.#run(`CREATE OR REPLACE TEMP TABLE spillway_incoming AS SELECT * FROM ${into} LIMIT 0`)
      requireWhole(shard, await this.#run(`INSERT INTO spillway_incoming (${columns}) ${select}`))
      const gone = await this.#query(
        `DELETE FROM ${into} t USING (SELECT DISTINCT query_type, query_value, id FROM spillway_incoming) n WHERE t.${DATA_SET_COLUMN.name} = ${literal(dataSet.id)} AND t.query_type = n.query_type AND t.query_value = n.query_value AND t.id = n.id RETURNING t.${PARTITION_COLUMN.name} AS name`,
      )
      await takeReplaced(this.#query, dataSet.id, table, countNames(gone))
      replaced = shard.rows
      replaced -= await this.#run(
        `INSERT INTO ${into} (${columns}) SELECT DISTINCT ON (query_type, query_value, id) ${columns} FROM spillway_incoming ORDER BY query_type, query_value, id, imported_at DESC`,
      )
      await this.#run('DROP TABLE spillway_incoming')
    } else requireWhole(shard, await this.#run(`INSERT INTO ${into} (${columns}) ${select}`))
    await this.#run(
      `INSERT INTO ${qualified(table, LEDGER)} (data_set, shard, sha256, rows, loaded_at, table_name, partitions, pipeline, replaced) VALUES (${[dataSet.id, shard.path, shard.sha256].map(literal).join(', ')}, ${shard.rows}, ${literal(loadedAt)}::TIMESTAMPTZ, ${literal(table.name)}, [${shard.partitions.map(literal).join(', ')}], ${literal(dataSet.pipeline)}, ${replaced})`,
    )
  }

  /** @returns the number of rows that the statement changed */
  readonly #run = async (sql: string): Promise<number> => {
    // A commit writes to the write-ahead log, which has to be private.
    if (sql === 'COMMIT') await this.#opened.keepPrivate()
    return (await guarded(this.#file, () => this.#connection.run(sql))).rowsChanged
  }

  readonly #query = (sql: string) => selectRows(this.#connection, this.#file, sql)
}

function* conditionsAbout(about: readonly ManifestShard[] | null): Generator<string> {
  if (about === null) return yield 'true'
  for (const paths of slices(about.map(({ path }) => path))) yield `shard IN (${paths})`
  for (const keys of slices(about.flatMap(({ partitions }) => partitions)))
    yield `list_has_any(partitions, [${keys}])`
}

async function findColumns(
  connection: DuckDBConnection,
  file: string,
  { schema, name }: TableSpec,
): Promise<readonly FoundColumn[]> {
  const rows = await selectRows(
    connection,
    file,
    `SELECT column_name AS name, data_type AS type, is_nullable AS nullable FROM duckdb_columns() WHERE database_name = current_database() AND schema_name = ${schema === null ? 'current_schema()' : literal(schema)} AND table_name = ${literal(name)}`,
  )
  return rows as unknown as readonly FoundColumn[]
}

/** @param threads null: as many as there are processors */
export function duckdbSettings(threads: number | null): Record<string, string> {
  return { ...ERRORS_WITH_CODES, ...(threads === null ? {} : { threads: String(threads) }) }
}

/** Values as JavaScript has them. */
async function selectRows(
  connection: DuckDBConnection,
  file: string,
  sql: string,
): Promise<readonly Record<string, unknown>[]> {
  return (await guarded(file, () => connection.runAndReadAll(sql))).getRowObjectsJS()
}

function countNames(rows: readonly Record<string, unknown>[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { name } of rows) counts.set(String(name), (counts.get(String(name)) ?? 0) + 1)
  return counts
}

// Keeps statements short enough for the parser.
const NAMES_AT_ONCE = 1000

function* slices(names: readonly string[]): Generator<string> {
  for (let at = 0; at < names.length; at += NAMES_AT_ONCE) {
    yield names
      .slice(at, at + NAMES_AT_ONCE)
      .map(literal)
      .join(', ')
  }
}
