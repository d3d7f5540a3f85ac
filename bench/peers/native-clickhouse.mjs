/** Baseline: ClickHouse reads the items of the same pages as lines and copies them to Parquet, with two threads. */
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const { query } = createRequire(join(import.meta.dirname, '../../test/open-tables/clickhouse/package.json'))(
  'chdb',
)
const [, , files] = process.argv
mkdirSync(process.env.BENCH_OUTPUT, { recursive: true })
query(`
  INSERT INTO FUNCTION file('${process.env.BENCH_OUTPUT}/rows.parquet', 'Parquet')
  SELECT id, domain, identity_name, if(hash IS NULL, NULL, '[REDACTED]') AS hash, hash_type,
    parseDateTime64BestEffortOrNull(imported_at, 6) AS imported_at, source_id, source.name AS source_name,
    source.description_en AS source_description_en, source.description_fr AS source_description_fr,
    source.is_alert_enabled AS source_is_alert_enabled,
    parseDateTime64BestEffortOrNull(source.breached_at, 6) AS source_breached_at,
    parseDateTime64BestEffortOrNull(source.leaked_at, 6) AS source_leaked_at,
    'domain' AS query_type, 'scatterholt.com' AS query_value
  FROM file('${files}', 'JSONEachRow', 'id Int64, domain String, identity_name String, hash Nullable(String),
    hash_type Nullable(String), imported_at String, source_id String, source Tuple(id String, name String,
    description_en Nullable(String), description_fr Nullable(String), is_alert_enabled Bool,
    breached_at Nullable(String), leaked_at Nullable(String))')
  SETTINGS max_threads = 2, output_format_parquet_compression_method = 'zstd'
`)
