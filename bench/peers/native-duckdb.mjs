/**
 * Baseline: DuckDB reads the same pages as files (read_json), or their items as lines, and copies them to Parquet, with two
 * threads. Arguments: the files, a codec, `pages` or `lines`.
 */
import { mkdirSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'

const [, , files, codec = 'zstd', form = 'pages'] = process.argv
const TYPES = {
  id: 'BIGINT',
  domain: 'VARCHAR',
  identity_name: 'VARCHAR',
  hash: 'VARCHAR',
  hash_type: 'VARCHAR',
  imported_at: 'VARCHAR',
  source_id: 'VARCHAR',
  source: `STRUCT(id VARCHAR, name VARCHAR, description_en VARCHAR, description_fr VARCHAR, is_alert_enabled BOOLEAN,
    breached_at VARCHAR, leaked_at VARCHAR)`,
}
const types = (separator, quote) =>
  Object.entries(TYPES).map(([name, type]) => `${name}${separator}${quote}${type}${quote}`)
const items =
  form === 'lines'
    ? `SELECT item FROM read_ndjson('${files}', columns = {${types(': ', "'")}}) AS item`
    : `SELECT unnest(items) AS item FROM read_json('${files}', maximum_object_size = 400000000,
        columns = {items: 'STRUCT(${types(' ', '')})[]'})`

mkdirSync(process.env.BENCH_OUTPUT, { recursive: true })
const instance = await DuckDBInstance.create(':memory:', { threads: '2' })
const connection = await instance.connect()
await connection.run(`
  COPY (
    SELECT item.id, item.domain, item.identity_name,
      CASE WHEN item.hash IS NULL THEN NULL ELSE '[REDACTED]' END AS hash, item.hash_type,
      item.imported_at::TIMESTAMPTZ AS imported_at, item.source_id, item.source.name AS source_name,
      item.source.description_en AS source_description_en, item.source.description_fr AS source_description_fr,
      item.source.is_alert_enabled AS source_is_alert_enabled,
      item.source.breached_at::TIMESTAMPTZ AS source_breached_at,
      item.source.leaked_at::TIMESTAMPTZ AS source_leaked_at,
      'domain' AS query_type, 'scatterholt.com' AS query_value
    FROM (${items})
  ) TO '${process.env.BENCH_OUTPUT}/rows.parquet' (FORMAT parquet, COMPRESSION ${codec})
`)
connection.closeSync()
instance.closeSync()
