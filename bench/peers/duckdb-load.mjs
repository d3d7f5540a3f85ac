/** Baseline: runs SQL in a DuckDB file. Arguments: file, SQL. */
import { DuckDBInstance } from '@duckdb/node-api'

const [, , file, sql] = process.argv
const instance = await DuckDBInstance.create(file)
const connection = await instance.connect()
await connection.run(sql)
connection.closeSync()
instance.closeSync()
