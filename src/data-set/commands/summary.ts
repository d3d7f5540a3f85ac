import { kindOfRows, oneLine, rulesOf, type Store, unlessSecret } from '../../core/index.ts'
import { MANIFEST_PATH, type Manifest, type Verdict } from '../../state/index.ts'
import type { Groups, RowFacts, SummaryInput } from '../../summary/index.ts'
import { lacksDuckdb } from '../../warehouse/index.ts'
import type { DataSet } from '../data-set.ts'
import { knownState } from '../open/find-state.ts'
import { nothingExported } from '../open-store.ts'
import type { WriteOptions } from '../options.ts'
import { readVerdict } from '../plan/verdict.ts'
import { inputOf, pages, writePage } from '../settle/summary-page.ts'
import { queryListed } from './warehouse/query.ts'

export type SummarizedDataSet = {
  readonly pipeline: string
  readonly rows: number
  readonly shards: number
  /** Whether its rows were asked, which needs DuckDB. */
  readonly hasFacts: boolean
  readonly verdict: Verdict
  readonly markdown: string
}

/** Markdown writes nothing. @throws ExportError `locked` during a run; `config` when nothing was exported yet */
export async function summarizeDataSet(
  dataSet: DataSet,
  format: 'html' | 'markdown',
  options: Pick<WriteOptions, 'clock' | 'stop' | 'onLog' | 'version'>,
): Promise<SummarizedDataSet> {
  const { pipeline, planned } = dataSet
  const summarized = async (
    store: Store,
    bytes: Uint8Array,
    atWork: false | 'perhaps',
  ): Promise<SummaryInput> => {
    const { state, fault } = await knownState(store)
    const verdict = await readVerdict(store, planned, state, { fault, atWork })
    const input = inputOf(planned, bytes, state, verdict, options.version)
    return { ...input, rows: await askRows(dataSet, input.manifest, options.stop) }
  }
  // Before the lock, which would create the folder, also if there is no data set.
  const found = await dataSet.reading(async (_, bytes) =>
    format === 'markdown' ? summarized(dataSet.store, bytes, 'perhaps') : null,
  )
  if (found !== null) return resultOf(found)
  return dataSet.hold(options, async (store) => {
    const bytes = await store.read(MANIFEST_PATH)
    if (bytes === null) throw nothingExported(pipeline)
    const input = await summarized(store, bytes, false)
    await writePage(store, input)
    return resultOf(input)
  })
}

async function resultOf(input: SummaryInput): Promise<SummarizedDataSet> {
  const { summaryMarkdown } = await pages()
  const { manifest, verdict, rows } = input
  return {
    pipeline: manifest.pipeline,
    rows: manifest.totals.rows,
    shards: manifest.totals.shards,
    hasFacts: rows !== null,
    verdict,
    markdown: summaryMarkdown(input),
  }
}

const MAX_GROUPS = 15

/** null: DuckDB is not installed, or there is nothing to ask for. @throws ExportError `damaged`; the reason of `stop` */
async function askRows(dataSet: DataSet, manifest: Manifest, stop: AbortSignal): Promise<RowFacts | null> {
  const { columns, resource, totals } = manifest
  const names = new Set(columns.map(({ name }) => name))
  const from = `FROM ${kindOfRows(resource)}`
  const people = names.has('identity_name') ? 'count(DISTINCT identity_name)' : 'NULL'
  if (!rulesOf(resource).holdsPeople) return null
  const selects = [
    `SELECT 'people' AS fact, NULL AS name, NULL AS id, ${people} AS count, NULL AS people ${from}`,
    ...groupings(names).map(
      ({ fact, name, id }) => `SELECT '${fact}', ${name}, ${id}, count(*), NULL ${from} GROUP BY ${id}`,
    ),
    ...(names.has('imported_at')
      ? [
          `SELECT 'month', strftime(imported_at, '%Y-%m') AS month, NULL, count(*), ${people} ${from} GROUP BY month`,
        ]
      : []),
  ]
  const sql = `SELECT *, count(*) OVER (PARTITION BY fact) AS groups, count(*) OVER (PARTITION BY fact, name) AS namesakes FROM (${selects.join(' UNION ALL ')}) QUALIFY fact NOT IN ('source', 'hash_type') OR row_number() OVER (PARTITION BY fact ORDER BY count DESC, id) <= ${MAX_GROUPS} ORDER BY fact, count DESC, id, name`
  try {
    const { rows } = await queryListed(dataSet, manifest, sql, stop)
    const of = (wanted: string) => rows.filter(([fact]) => fact === wanted)
    return {
      people: asNumber(of('people')[0]?.[3]),
      sources: groupsOf(of('source'), totals.rows, 'no name'),
      hash_types: groupsOf(of('hash_type'), totals.rows, 'no type'),
      secrets: groupsOf(of('secret'), totals.rows, 'none'),
      months: of('month')
        .map(([, month, , count, people]) => ({
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

/** Sources are those of one id: several may share a name, and one may change it. */
function groupings(names: ReadonlySet<string>) {
  const source = ['source_id', 'source_name'].find((name) => names.has(name))
  const sourceName = names.has('source_name') ? 'max(source_name)' : 'source_id'
  return [
    ...(source === undefined ? [] : [{ fact: 'source', name: sourceName, id: source }]),
    ...(names.has('hash_type') ? [{ fact: 'hash_type', name: 'hash_type', id: 'hash_type' }] : []),
    ...(names.has('secret_kind') ? [{ fact: 'secret', name: SECRET, id: SECRET }] : []),
  ]
}

/** What is known of a secret: see `transform.secret_facts`. */
const SECRET =
  "CASE WHEN secret_meets_policy THEN 'plain, and meets the policy' WHEN secret_kind = 'plain' THEN 'plain, and does not meet the policy' ELSE secret_kind END"

function asNumber(value: unknown): number | null {
  return value == null ? null : Number(value)
}

/** Names that the service sent, which may contain anything; with their id where they would be the same. */
function groupsOf(rows: readonly (readonly unknown[])[], total: number, none: string): Groups {
  const shown = (text: unknown): string =>
    text == null ? none : oneLine(unlessSecret(String(text))) || '(blank)'
  // Texts that differ in blanks alone are shown alike.
  const sums = new Map<string, number>()
  for (const [, name, id, count, , , namesakes] of rows) {
    const text = Number(namesakes) > 1 ? `${shown(name)} (${shown(id)})` : shown(name)
    sums.set(text, (sums.get(text) ?? 0) + Number(count))
  }
  const groups = [...sums].map(([name, rows]) => ({ name, rows })).sort((a, b) => b.rows - a.rows)
  return {
    groups,
    more: Number(rows[0]?.[5] ?? 0) - rows.length,
    others: groups.reduce((left, { rows }) => left - rows, total),
  }
}
