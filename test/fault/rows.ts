import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { parquetReadObjects } from 'hyparquet'
import { shardHashes } from './support.ts'

/** The rows of a data set as a multiset: how often each row, as JSON, occurs. The order of rows does not matter. */
export async function rowsOf(output: string): Promise<Map<string, number>> {
  const rows = new Map<string, number>()
  for (const path of (await shardHashes(output)).keys()) {
    const file = await readFile(join(output, path))
    const bytes = path.endsWith('.gz') ? gunzipSync(file) : file
    for (const record of path.includes('.csv') ? csvRows(bytes) : await parquetRows(bytes)) {
      const row = JSON.stringify(record, (_, value) => (typeof value === 'bigint' ? String(value) : value))
      rows.set(row, (rows.get(row) ?? 0) + 1)
    }
  }
  return rows
}

const csvRows = (bytes: Uint8Array): readonly unknown[] => parse(Buffer.from(bytes), { from: 2 })

function parquetRows(bytes: Uint8Array): Promise<readonly unknown[]> {
  const { buffer, byteOffset, byteLength } = bytes
  return parquetReadObjects({ file: buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer })
}

/** The number of rows in one multiset that are missing from the other. */
export function missingRows(of: ReadonlyMap<string, number>, from: ReadonlyMap<string, number>): number {
  let missing = 0
  for (const [row, times] of of) missing += Math.max(0, times - (from.get(row) ?? 0))
  return missing
}
