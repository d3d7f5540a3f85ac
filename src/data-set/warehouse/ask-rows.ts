import { kindOfRows, oneLine, type Pipeline, rulesOf, unlessSecret } from '../../core/index.ts'
import type { Manifest } from '../../state/index.ts'
import type { Groups, RowFacts } from '../../summary/index.ts'
import { lacksDuckdb } from '../../warehouse/index.ts'
import { queryPipeline } from './query.ts'

const MAX_GROUPS = 15

/**
 * Asks the rows of a data set what the manifest does not know.
 * @returns null: DuckDB is not installed, or there are no columns to ask for
 * @throws ExportError `damaged` when a shard is missing or cannot be read; the reason of `stop`
 */
export async function askRows(
  pipeline: Pipeline,
  { columns, resource, totals }: Manifest,
  stop: AbortSignal,
): Promise<RowFacts | null> {
  const names = new Set(columns.map(({ name }) => name))
  const from = `FROM ${kindOfRows(resource)}`
  const people = names.has('identity_name') ? 'count(DISTINCT identity_name)' : 'NULL'
  if (!rulesOf(resource).holdsPeople) return null
  const selects = [
    `SELECT 'people' AS fact, NULL AS name, ${people} AS count, NULL AS people ${from}`,
    ...['source_name', 'hash_type']
      .filter((name) => names.has(name))
      .map((name) => `SELECT '${name}', ${name}, count(*), NULL ${from} GROUP BY ${name}`),
    ...(names.has('imported_at')
      ? [
          `SELECT 'month', strftime(imported_at, '%Y-%m') AS month, count(*), ${people} ${from} GROUP BY month`,
        ]
      : []),
  ]
  const sql = `SELECT * FROM (${selects.join(' UNION ALL ')}) QUALIFY fact NOT IN ('source_name', 'hash_type') OR row_number() OVER (PARTITION BY fact ORDER BY count DESC, name) <= ${MAX_GROUPS} ORDER BY fact, count DESC, name`
  try {
    const { rows } = await queryPipeline(pipeline, sql, { database: null, cwd: '.', stop })
    const of = (wanted: string) => rows.filter(([fact]) => fact === wanted)
    return {
      people: asNumber(of('people')[0]?.[2]),
      sources: groupsOf(of('source_name'), totals.rows, 'no name'),
      hash_types: groupsOf(of('hash_type'), totals.rows, 'no type'),
      months: of('month')
        .map(([, month, count, people]) => ({
          month: String(month),
          rows: Number(count),
          people: asNumber(people),
        }))
        .sort((a, b) => (a.month < b.month ? -1 : 1)),
    }
  } catch (error) {
    if (lacksDuckdb(error)) return null
    throw error
  }
}

function asNumber(value: unknown): number | null {
  return value == null ? null : Number(value)
}

/** Names that the service sent, which may contain anything. */
function groupsOf(rows: readonly (readonly unknown[])[], total: number, none: string): Groups {
  if (rows.length === 0) return { groups: [], others: 0 }
  const sums = new Map<string, number>()
  for (const [, given, count] of rows) {
    const name = given === null ? none : oneLine(unlessSecret(String(given))) || '(blank)'
    sums.set(name, (sums.get(name) ?? 0) + Number(count))
  }
  const groups = [...sums].map(([name, rows]) => ({ name, rows }))
  return { groups, others: total - groups.reduce((sum, { rows }) => sum + rows, 0) }
}
