import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { DuckDBInstance } from '@duckdb/node-api'
import { parse } from 'csv-parse/sync'

/**
 * Compares the export with the data of the service.
 * @returns number of rows, of lost rows, and of rows that are duplicates or do not exist in the service; secrets found
 */
export async function judge({ output, folder, sandbox, scenario, secrets, printed }) {
  const items = scenario.domains.flatMap((fqdn) =>
    [...sandbox.expected({ query: { type: 'domain', fqdn }, ...scenario.range })].map((item) => ({
      fqdn,
      item,
    })),
  )
  const valid = items.filter(({ item }) => isValid(item))
  const expected = counted(valid.map(({ fqdn, item }) => rowKey(fqdn, item.id, instant(item.imported_at))))
  const rows = await exportedRows(output)
  const found = counted(rows.map((row) => rowKey(row.query_value, row.id, row.imported_at)))
  let lost = 0
  let doubled = 0
  for (const [key, times] of expected) lost += Math.max(0, times - (found.get(key) ?? 0))
  for (const [key, times] of found) doubled += Math.max(0, times - (expected.get(key) ?? 0))
  const quarantined = await quarantinedItems(output)
  lost += Math.max(0, items.length - valid.length - quarantined)
  const haystacks = [
    ...printed.map((text, run) => [`output of run ${run + 1}`, text]),
    ['rows', rows.map((row) => JSON.stringify(row)).join('\n')],
    ...(await texts(folder)),
  ]
  const leaks = [...secrets, ...distinctive(items)].flatMap((secret) =>
    haystacks
      .filter(([, text]) => text.includes(secret))
      .map(([where]) => `${JSON.stringify(secret)} in ${where}`),
  )
  return { rows: rows.length, quarantined, lost, doubled, leaked: leaks.length, leaks }
}

const isString = (value) => typeof value === 'string'
const isStringOrNull = (value) => value === null || value === undefined || isString(value)

function isValid(item) {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false
  const { id, imported_at, identity_name, hash, hash_type, source_id, source } = item
  return (
    Number.isSafeInteger(id) &&
    isString(imported_at) &&
    !Number.isNaN(Date.parse(imported_at)) &&
    isString(identity_name) &&
    isStringOrNull(hash) &&
    isStringOrNull(hash_type) &&
    isString(source_id) &&
    (source === null || (typeof source === 'object' && typeof source.is_alert_enabled === 'boolean'))
  )
}

/** Secrets that occur only in `hash`. An output that contains one is not masked. */
function distinctive(items) {
  const others = items
    .map(({ item }) => JSON.stringify(item, (key, value) => (key === 'hash' ? null : value)))
    .join('\n')
  const hashes = new Set(
    items.map(({ item }) => item?.hash).filter((hash) => isString(hash) && hash.length >= 10),
  )
  return [...hashes].filter((hash) => !others.includes(JSON.stringify(hash).slice(1, -1))).slice(0, 100)
}

function rowKey(...parts) {
  return parts.join(' ')
}

function counted(keys) {
  const counts = new Map()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

/** In milliseconds, the precision that all formats have. */
function instant(time) {
  return new Date(time).toISOString()
}

async function exportedRows(output) {
  const paths = (await filesBelow(output)).filter((path) => !relative(output, path).startsWith('_'))
  const rows = []
  const parquet = paths.filter((path) => path.endsWith('.parquet'))
  if (parquet.length > 0) rows.push(...(await parquetRows(parquet)))
  for (const path of paths.filter((path) => /\.csv(\.gz)?$/.test(path))) {
    const bytes = await readFile(path)
    const records = parse(path.endsWith('.gz') ? gunzipSync(bytes) : bytes, { columns: true })
    for (const record of records) rows.push({ ...record, imported_at: instant(record.imported_at) })
  }
  return rows
}

async function parquetRows(paths) {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    const files = paths.map((path) => `'${path}'`).join()
    const from = `read_parquet([${files}], hive_partitioning = false)`
    const result = await connection.runAndReadAll(
      `SELECT * REPLACE (id::VARCHAR AS id, epoch_ms(imported_at)::VARCHAR AS imported_at) FROM ${from}`,
    )
    return result
      .getRowObjectsJson()
      .map((row) => ({ ...row, imported_at: instant(Number(row.imported_at)) }))
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

async function quarantinedItems(output) {
  let items = 0
  for (const path of await filesBelow(join(output, '_quarantine'))) {
    items += (await readFile(path, 'utf8')).split('\n').length - 1
  }
  return items
}

async function texts(folder) {
  const all = []
  for (const path of await filesBelow(folder))
    all.push([relative(folder, path), (await readFile(path)).toString()])
  return all
}

async function filesBelow(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}
