import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { columnList } from '../table/shard-rows.ts'
import { DUCKDB_TYPES, literal, type TableSpec } from '../table/table.ts'
import {
  type Database,
  type FoundColumn,
  type RelationKind,
  requireWhole,
  transaction,
  type Warehouse,
} from '../table/warehouse.ts'
import { guarded, loadDuckdb, type OpenFileOptions, openDuckdbFile, openInstance } from './instance.ts'

export class DuckdbWarehouse implements Warehouse {
  readonly #file: string
  readonly #instance: DuckDBInstance
  readonly #connection: DuckDBConnection

  private constructor(file: string, instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#file = file
    this.#instance = instance
    this.#connection = connection
  }

  /** Makes a missing file; waits while another process has it open. @throws ExportError `locked` after half a minute */
  static async open(file: string, options: OpenFileOptions): Promise<DuckdbWarehouse> {
    const instance = await openDuckdbFile(file, options)
    const connection = await guarded(file, () => instance.connect())
    const warehouse = new DuckdbWarehouse(file, instance, connection)
    await warehouse.#run("SET TimeZone = 'UTC'")
    return warehouse
  }

  /** Opens a file to read it; null: it is not there, or it cannot be opened now, as while another process has it. */
  static async openToRead(file: string): Promise<DuckdbWarehouse | null> {
    await loadDuckdb()
    const instance = await openInstance(file, { access_mode: 'READ_ONLY' }).catch(() => null)
    return instance && new DuckdbWarehouse(file, instance, await instance.connect())
  }

  // The open file is locked already. Names are case-insensitive in DuckDB.
  async find(table: TableSpec): Promise<TableSpec> {
    const given = table.schema === null ? 'current_schema()' : literal(table.schema)
    const [found] = await this.query(
      `SELECT current_database() AS catalog, s.schema_name AS schema, t.table_name AS name FROM (SELECT 1) LEFT JOIN duckdb_schemas() s ON s.database_name = current_database() AND lower(s.schema_name) = lower(${given}) LEFT JOIN duckdb_tables() t ON t.database_name = current_database() AND t.schema_name = s.schema_name AND lower(t.table_name) = lower(${literal(table.name)})`,
    )
    const { catalog, schema, name } = found as Readonly<Record<'catalog' | 'schema' | 'name', string | null>>
    return { ...table, catalog: catalog!, schema: schema ?? table.schema, name: name ?? table.name }
  }

  readonly query = async (sql: string): Promise<readonly Record<string, unknown>[]> => {
    return (await guarded(this.#file, () => this.#connection.runAndReadAll(sql))).getRowObjectsJS()
  }

  async hasSchema(name: string): Promise<boolean> {
    const found = await this.query(
      `SELECT 1 FROM duckdb_schemas() WHERE database_name = current_database() AND schema_name = ${literal(name)}`,
    )
    return found.length > 0
  }

  async findColumns({ schema, name }: TableSpec): Promise<readonly FoundColumn[]> {
    const given = schema === null ? 'current_schema()' : literal(schema)
    const rows = await this.query(
      `SELECT column_name AS name, data_type AS type, is_nullable OR column_default IS NOT NULL AS optional FROM duckdb_columns() WHERE database_name = current_database() AND schema_name = ${given} AND lower(table_name) = lower(${literal(name)}) ORDER BY column_index`,
    )
    return rows as unknown as readonly FoundColumn[]
  }

  async kindOf({ schema }: TableSpec, name: string): Promise<RelationKind> {
    const where = `WHERE database_name = current_database() AND schema_name = ${literal(schema ?? '')} AND lower`
    const [found] = await this.query(
      `SELECT 'table' AS kind FROM duckdb_tables() ${where}(table_name) = lower(${literal(name)}) UNION ALL SELECT 'view' FROM duckdb_views() ${where}(view_name) = lower(${literal(name)})`,
    )
    return (found?.kind ?? null) as RelationKind
  }

  async makeView(name: string, select: string, meaning: string): Promise<void> {
    await this.#run(`CREATE OR REPLACE VIEW ${name} AS ${select}`)
    await this.#run(`COMMENT ON VIEW ${name} IS ${literal(meaning)}`)
  }

  readonly types = DUCKDB_TYPES
  readonly afterCreation = () => []
  readonly ledgerKey = ''

  define(_table: TableSpec, work: (run: Database['run']) => Promise<void>): Promise<void> {
    return transaction(this.#run, () => work(this.#run))
  }

  transaction<T>(_table: TableSpec, work: (database: Database) => Promise<T>): Promise<T> {
    return transaction(this.#run, () => work(this.#database))
  }

  // No indexes: DuckDB skips row groups by their min/max statistics.
  async finish(): Promise<void> {}

  async close(): Promise<void> {
    this.#connection.closeSync()
    this.#instance.closeSync()
  }

  /** @returns the number of rows that the statement changed */
  readonly #run = async (sql: string): Promise<number> => {
    return (await guarded(this.#file, () => this.#connection.run(sql))).rowsChanged
  }

  readonly #database: Database = {
    query: this.query,
    run: this.#run,
    insert: async (shards, select, table, into) => {
      requireWhole(shards, await this.#run(`INSERT INTO ${into} (${columnList(table)}) ${select}`))
      return 0
    },
  }
}
