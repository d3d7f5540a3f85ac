import {
  columnsOf,
  formatInstant,
  type NamedPipeline,
  parseWindow,
  unlessSecret,
  type Window,
} from '../../core/index.ts'
import {
  classOf,
  largestGroups,
  MIN_ROWS,
  type Shown,
  type SummaryPageData,
  type SummaryPageRun,
  shareOf,
  shown,
  shownCounts,
  shownSeries,
  shownTotal,
} from '../../report/index.ts'
import { leftOutClauses, sumOfReasons } from '../completeness.ts'
import { heatMap, type RowsByWindow } from './heat-map.ts'
import type { Known, KnownShard } from './known.ts'
import { liesWithin, timeline } from './timeline.ts'

const MAX_QUERIES = 50
const MAX_SOURCES = 15
const MAX_HASH_TYPES = 12
const MAX_RUNS = 20
const MAX_FAILURES = 20
const MAX_SHARDS = 500

/** The contents of a summary page besides the aggregates of rows. */
export type SummaryPageContext = {
  readonly nowMs: number
  /** Spillway's own. */
  readonly version: string
  /** Queries that the pipeline file no longer has. */
  readonly retired: number
  /** Of the service; null: not known. */
  readonly host: string | null
  readonly signature: { readonly manifest: string | null; readonly signed: boolean }
}

/** Gathers what a summary page may show: names that paths have, and aggregates, but no count that reveals few rows. */
export function gatherSummaryPage(
  pipeline: NamedPipeline,
  known: Known,
  context: SummaryPageContext,
): SummaryPageData {
  const { extract, transform, load } = pipeline
  const { queries, windows } = extract.unfiltered ?? extract
  const { rows, bytes, shards, files } = shardsOf(known)
  const { aggregates, runs, failed } = known
  const heat = heatMap(known)
  const total = shownRows(
    rows,
    known,
    files.map(({ rows }) => rows),
    heat?.safe ?? true,
  )
  const quarantined = shownOfRuns(runs, known.quarantined, ({ quarantined }) => quarantined)
  const repeated = shownOfRuns(runs, known.repeated, ({ repeated }) => repeated)
  const reasons = [...sumOfReasons(runs, unlessSecret)]
  const reasonCounts = shownCounts(reasons.map(([, items]) => items))
  const quarantinedTotal = reasonCounts.total === null && reasons.length > 0 ? null : quarantined.total
  const forgotten = shown(known.leftOut.forgotten)
  const { counted } = total
  const times = timeline(counted?.days ?? NONE, heat?.together ?? [], missingWindows(known))
  return {
    version: 1,
    pipeline: pipeline.name,
    resource: extract.resource,
    format: load.format.kind,
    written_at: new Date(context.nowMs).toISOString(),
    spillway: context.version,
    from: known.from,
    verdict: verdictOf(known, { quarantined: quarantinedTotal, forgotten }),
    request: {
      queries: queries.slice(0, MAX_QUERIES).map(({ name }) => name),
      queries_total: queries.length,
      retired: context.retired,
      windows:
        windows === null
          ? null
          : {
              from: formatInstant(windows.from),
              until: windows.until === 'now' ? 'now' : formatInstant(windows.until),
              every: everyText(windows.every),
            },
      masking: { secret: transform.secret, identity: transform.identity },
      columns: columnsOf(pipeline).map(({ name }) => name),
      config_digest: known.configDigest,
    },
    provenance: {
      host: context.host ?? 'not known',
      organization: organizationOf(pipeline),
      ...context.signature,
      pruned: known.leftOut.pruned,
    },
    rows: {
      rows: total.rows,
      rows_at_most: total.atMost,
      rows_at_least: total.atLeast,
      bytes: Math.ceil(bytes / 1000) * 1000,
      shards,
      new_rows: runs.length === 0 ? 0 : total.ofRuns.at(-1)!,
      quarantined: quarantinedTotal,
      repeated: repeated.total,
      forgotten,
      counted_rows: counted === null ? null : shown(counted.rows),
      timeline: times,
      sources: named(counted?.sources ?? NONE, MAX_SOURCES, 'no name'),
      hash_types: named(counted?.hash_types ?? NONE, MAX_HASH_TYPES, 'no type'),
      nulls: Object.entries(counted?.nulls ?? {}).map(([column, nulls]) => ({
        column,
        share: shareOf(nulls, aggregates.rows),
      })),
      heat: heat === null ? null : shownHeat(heat, total, times),
    },
    runs: {
      runs: runs.slice(-MAX_RUNS).map((run, i) =>
        runRow(run, {
          rows: total.ofRuns[i]!,
          quarantined: quarantined.counts[i]!,
          repeated: repeated.counts[i]!,
        }),
      ),
      runs_total: runs.length,
      reasons: { groups: reasons.map(([name], i) => ({ name, rows: reasonCounts.counts[i]! })), others: 0 },
      failures: failed.slice(0, MAX_FAILURES),
      failures_total: failed.length,
    },
    shards: files,
  }
}

/** @param items null: a small number, or one that would reveal another */
function verdictOf(
  { complete, progress, leftOut }: Known,
  items: Readonly<Record<'quarantined' | 'forgotten', Shown>>,
): SummaryPageData['verdict'] {
  const left_out = leftOutClauses(leftOut, items).map((clause) => unlessSecret(clause))
  if (progress === null) return { complete, partitions: null, span: null, left_out }
  const { span, ...partitions } = progress
  return {
    complete,
    partitions,
    span: span === null ? null : { from: formatInstant(span.from), until: formatInstant(span.until) },
    left_out,
  }
}

function organizationOf({ service: { organization, auth } }: NamedPipeline): string | null {
  if (organization !== null) return organization
  return auth.kind === 'api-key' && auth.tenantId !== null ? String(auth.tenantId) : null
}

/** Windows that are not done for some query; null: a partition without a window is not done. */
function missingWindows({ partitions }: Known): readonly Window[] | null {
  const names = new Set<string>()
  for (const { window, state } of partitions?.() ?? []) if (state !== 'done') names.add(window)
  if (names.has('all')) return null
  return [...names].map(parseWindow).filter((window) => window !== null)
}

/**
 * Whether rounded numbers may be shown beside a timeline. If the timeline leaves times out, the other times would
 * reveal their rows, unless they are whole windows.
 */
function staysOpen(
  { columns }: RowsByWindow,
  { others, unit }: SummaryPageData['rows']['timeline'],
): boolean {
  return others === 0 || (columns.length > 0 && liesWithin(columns, unit))
}

const NONE = { counts: [], others: 0 }

type ShownRows = {
  readonly rows: Shown
  readonly atMost: number | null
  readonly atLeast: number | null
  /** Whether an earlier page shows a number so near that no other division of the total may be shown. */
  readonly isNearEarlier: boolean
  /** The rows of the last runs. */
  readonly ofRuns: readonly Shown[]
  /** The rows that may be shown by day, source and kind of hash; null: none. */
  readonly counted: Known['aggregates'] | null
}

/**
 * The numbers of rows that may be shown, given that files, queries and runs each add up to the same total. If the total
 * would reveal the rows of a class or a run, it is rounded up, and no other division of the total is shown.
 * @param files the classes of files
 * @param isOpen whether the total does not reveal the rows of partitions
 */
function shownRows(
  rows: number,
  { runs, aggregates, reported }: Known,
  files: readonly number[],
  isOpen: boolean,
): ShownRows {
  const ofRuns = shownOfRuns(runs, rows, (run) => run.rows)
  const nothing = { rows: null, atMost: null, atLeast: null, counted: null }
  const hidden = { ...nothing, isNearEarlier: false, ofRuns: ofRuns.counts }
  const change = reported === null ? 0 : rows - reported
  if (reported !== null && (shown(Math.abs(change)) === null || (ofRuns.total === null && change !== 0))) {
    // The difference to the earlier page would be a small count, or reveal one.
    const bounds = { atLeast: change > 0 ? reported : null, atMost: change < 0 ? reported : null }
    return { ...hidden, ...bounds, isNearEarlier: true }
  }
  const limits: number[] = []
  const { atMost } = shownTotal(rows, files)
  if (atMost !== null) limits.push(atMost)
  if ((ofRuns.total === null && rows > 0) || !isOpen) limits.push(Math.ceil((rows + MIN_ROWS) / 10) * 10)
  if (limits.length > 0) {
    const hiddenRuns = ofRuns.counts.map((count) => (count === 0 ? 0 : null))
    return { ...hidden, atMost: Math.max(...limits), ofRuns: hiddenRuns }
  }
  // The uncounted rows are a group as well.
  const rest = shownCounts([], Math.max(0, rows - aggregates.rows))
  const counted = aggregates.rows === rows || rest.total !== null ? aggregates : null
  return { ...hidden, rows: shown(rows), counted }
}

/** Counts of the listed runs, given that the total of all runs is shown too. */
function shownOfRuns(runs: Known['runs'], total: number, of: (run: Known['runs'][number]) => number) {
  const { counts, isOpen } = shownSeries(runs.map(of))
  return { counts: counts.slice(-MAX_RUNS), total: isOpen ? shown(total) : null }
}

/** The table of queries and windows, as far as the total and the timeline permit. */
function shownHeat(
  heat: RowsByWindow,
  { rows, isNearEarlier }: ShownRows,
  times: SummaryPageData['rows']['timeline'],
): RowsByWindow['map'] {
  // An earlier page may show the exact numbers of cells.
  if (isNearEarlier) return heat.bare
  return rows === null || !staysOpen(heat, times) ? heat.coarse : heat.map
}

function everyText(every: NonNullable<NamedPipeline['extract']['windows']>['every']): string {
  if (every === null) return 'one window'
  if (!('count' in every)) return `a window each ${every.unit}`
  return every.count === 1 ? `a window each ${every.unit}` : `a window each ${every.count} ${every.unit}s`
}

/** The first shards by path; the manifest has all. */
function shardsOf(known: Known) {
  let [rows, bytes, shards] = [0, 0, 0]
  let first: ShardRow[] = []
  // The rest is not among the first.
  let last: string | null = null
  for (const shard of known.shards()) {
    rows += shard.rows
    bytes += shard.bytes
    shards++
    if (last !== null && shard.path > last) continue
    first.push(shardRow(shard))
    if (first.length < 4 * MAX_SHARDS) continue
    first = firstOf(first)
    last = first.at(-1)!.path
  }
  return { rows, bytes, shards, files: firstOf(first) }
}

type ShardRow = SummaryPageData['shards'][number]

function firstOf(shards: ShardRow[]): ShardRow[] {
  return shards.sort((a, b) => (a.path < b.path ? -1 : 1)).slice(0, MAX_SHARDS)
}

/** The length of a file reveals its number of rows; a length in thousands of bytes does so only for large files. */
function shardRow({ path, rows, bytes, sha256 }: KnownShard): ShardRow {
  return { path, rows: classOf(rows), kilobytes: Math.ceil(bytes / 1000), sha256 }
}

/** Names that the service sent, which may contain anything. */
function named(
  { counts, others }: { counts: readonly (readonly [string | null, number])[]; others: number },
  most: number,
  none: string,
) {
  const groups = new Map<string, number>()
  for (const [name, rows] of counts) {
    const own = name === null ? none : unlessSecret(name).replace(NOT_PLAIN, ' ').trim() || '(blank)'
    groups.set(own, (groups.get(own) ?? 0) + rows)
  }
  const { groups: shown, others: rest } = largestGroups([...groups], most, others)
  return { groups: shown.toSorted((a, b) => b.rows - a.rows || (a.name < b.name ? -1 : 1)), others: rest }
}

// Control characters and direction marks.
const NOT_PLAIN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu

type RowsOfRuns = Pick<SummaryPageRun, 'rows' | 'quarantined' | 'repeated'>

function runRow(run: Known['runs'][number], counts: RowsOfRuns): SummaryPageRun {
  return {
    started_at: run.started_at,
    finished_at: run.finished_at,
    // A run without a final journal entry was killed.
    status: run.status ?? 'interrupted',
    ...counts,
    requests: run.requests,
    min_requests: run.minRequests,
    searches: run.searchesSpent,
    left: run.searchesRemaining,
    retries: run.retries,
    failures: run.failures,
    spillway: run.version,
  }
}
