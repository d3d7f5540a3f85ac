/**
 * Baseline for small pages: a plain script with fetch, JSON.parse and hyparquet-writer, which writes a row group for
 * every 10,000 rows. No validation, no retries, no checkpoint, no fsync. Arguments: base URL, domains.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'

const [, , baseUrl, domains] = process.argv
const ROW_GROUP_ROWS = 10_000

const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' }
const TIME = { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', repetition_type: 'OPTIONAL' }
const COLUMNS = {
  id: { type: 'INT64', repetition_type: 'OPTIONAL' },
  domain: TEXT,
  identity_name: TEXT,
  hash: TEXT,
  hash_type: TEXT,
  imported_at: TIME,
  source_id: TEXT,
  source_name: TEXT,
  source_description_en: TEXT,
  source_description_fr: TEXT,
  source_is_alert_enabled: { type: 'BOOLEAN', repetition_type: 'OPTIONAL' },
  source_breached_at: TIME,
  source_leaked_at: TIME,
  query_type: TEXT,
  query_value: TEXT,
}

const names = Object.keys(COLUMNS)
const schema = [
  { name: 'root', num_children: names.length },
  ...names.map((name) => ({ name, ...COLUMNS[name] })),
]
const bytes = new ByteWriter()
const parquet = new ParquetWriter({ writer: bytes, schema })
let columns = emptyColumns()

for (let domain = 0; domain < Number(domains); domain++) {
  const fqdn = `d${domain}.example.com`
  let from = null
  do {
    const response = await fetch(`${baseUrl}/v4/credentials/global/_search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer bench' },
      body: JSON.stringify({ query: { type: 'domain', fqdn }, size: 100, from }),
    })
    const { items, next } = await response.json()
    for (const item of items) add(item, fqdn)
    if (columns.id.length >= ROW_GROUP_ROWS) write()
    from = next
  } while (from !== null)
}
if (columns.id.length > 0) write()
parquet.finish()
mkdirSync(process.env.BENCH_OUTPUT, { recursive: true })
writeFileSync(join(process.env.BENCH_OUTPUT, 'rows.parquet'), bytes.getBytes())

function add({ source, ...item }, fqdn) {
  columns.id.push(BigInt(item.id))
  columns.domain.push(item.domain)
  columns.identity_name.push(item.identity_name)
  columns.hash.push(item.hash === null ? null : '[REDACTED]')
  columns.hash_type.push(item.hash_type)
  columns.imported_at.push(new Date(item.imported_at))
  columns.source_id.push(item.source_id)
  columns.source_name.push(source.name)
  columns.source_description_en.push(source.description_en)
  columns.source_description_fr.push(source.description_fr)
  columns.source_is_alert_enabled.push(source.is_alert_enabled)
  columns.source_breached_at.push(source.breached_at === null ? null : new Date(source.breached_at))
  columns.source_leaked_at.push(source.leaked_at === null ? null : new Date(source.leaked_at))
  columns.query_type.push('domain')
  columns.query_value.push(fqdn)
}

function write() {
  const columnData = names.map((name) => ({ name, data: columns[name] }))
  parquet.write({ columnData, rowGroupSize: columns.id.length })
  columns = emptyColumns()
}

function emptyColumns() {
  return Object.fromEntries(names.map((name) => [name, []]))
}
