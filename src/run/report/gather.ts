import { columnsNamed, formatInstant, type NamedPipeline, unlessSecret } from '../../core/index.ts'
import {
  classOf,
  largestGroups,
  type ReportData,
  type ReportRun,
  shareOf,
  shown,
} from '../../report/index.ts'
import { heatMap } from './heat-map.ts'
import type { Known } from './known.ts'
import { timeline } from './timeline.ts'

const MAX_QUERIES = 50
const MAX_SOURCES = 15
const MAX_HASH_TYPES = 12
const MAX_REASONS = 15
const MAX_RUNS = 20
const MAX_FAILURES = 20
const MAX_SHARDS = 500

/** What is around a data set, beside what is known of it. */
export type Surroundings = {
  readonly nowMs: number
  /** Spillway's own. */
  readonly version: string
  /** Queries that the pipeline file no longer asks for. */
  readonly retired: number
}

/** All that a report may say: names that paths have, aggregates, and no count that tells of few rows. */
export function gatherReport(pipeline: NamedPipeline, known: Known, around: Surroundings): ReportData {
  const { extract, transform, load } = pipeline
  const { queries, windows } = extract.whole ?? extract
  const { rows, bytes, shards, files } = shardsOf(known)
  const { sums, runs, failed } = known
  return {
    version: 1,
    pipeline: pipeline.name,
    resource: extract.resource,
    format: load.format.kind,
    written_at: new Date(around.nowMs).toISOString(),
    spillway: around.version,
    from: known.from,
    asked: {
      queries: queries.slice(0, MAX_QUERIES).map(({ name }) => name),
      queries_total: queries.length,
      retired: around.retired,
      windows:
        windows === null
          ? null
          : {
              from: formatInstant(windows.from),
              until: windows.until === 'now' ? 'now' : formatInstant(windows.until),
              every: everyText(windows.every),
            },
      masking: { secret: transform.secret, identity: transform.identity },
      columns: columnsNamed(extract.resource, extract.include, transform.columns).map(({ name }) => name),
      config_digest: known.configDigest,
    },
    came: {
      rows: shown(rows),
      bytes: Math.ceil(bytes / 1000) * 1000,
      shards,
      new_rows: shown(runs.at(-1)?.rows ?? 0),
      quarantined: shown(known.quarantined),
      repeated: shown(known.repeated),
      counted_rows: shown(sums.rows),
      timeline: timeline(sums.days),
      sources: named(sums.sources, MAX_SOURCES, 'no name'),
      hash_types: named(sums.hash_types, MAX_HASH_TYPES, 'not told'),
      nulls: Object.entries(sums.nulls).map(([column, nulls]) => ({
        column,
        share: shareOf(nulls, sums.rows),
      })),
      heat: heatMap(known),
    },
    went: {
      runs: runs.slice(-MAX_RUNS).map(reportRun),
      runs_total: runs.length,
      reasons: largestGroups(reasonsOf(known), MAX_REASONS),
      failures: failed.slice(0, MAX_FAILURES),
      failures_total: failed.length,
    },
    shards: files,
  }
}

function everyText(every: NonNullable<NamedPipeline['extract']['windows']>['every']): string {
  if (every === null) return 'one window'
  if (!('count' in every)) return `a window each ${every.unit}`
  return every.count === 1 ? `a window each ${every.unit}` : `a window each ${every.count} ${every.unit}s`
}

/** The first by their paths; the manifest has all. */
function shardsOf(known: Known) {
  let [rows, bytes, shards] = [0, 0, 0]
  let first: ReturnType<typeof reportShard>[] = []
  // Beyond it none is among the first.
  let last: string | null = null
  for (const shard of known.shards()) {
    rows += shard.rows
    bytes += shard.bytes
    shards++
    if (last !== null && shard.path > last) continue
    first.push(reportShard(shard))
    if (first.length < 4 * MAX_SHARDS) continue
    first = firstOf(first)
    last = first.at(-1)!.path
  }
  return { rows, bytes, shards, files: firstOf(first) }
}

function firstOf(shards: ReturnType<typeof reportShard>[]): ReturnType<typeof reportShard>[] {
  return shards.sort((a, b) => (a.path < b.path ? -1 : 1)).slice(0, MAX_SHARDS)
}

/** What a file is long tells how many rows it has; thousands of bytes tell it of large ones alone. */
function reportShard({
  path,
  rows,
  bytes,
  sha256,
}: {
  path: string
  rows: number
  bytes: number
  sha256: string
}) {
  return { path, rows: classOf(rows), kilobytes: Math.ceil(bytes / 1000), sha256 }
}

/** Names by the service, which may have put anything into them. */
function named(
  { counts, others }: { counts: readonly (readonly [string | null, number])[]; others: number },
  most: number,
  none: string,
) {
  const groups = new Map<string, number>()
  for (const [name, rows] of counts) {
    const own = name === null ? none : unlessSecret(name.replace(NOT_PLAIN, ' ').trim() || '(blank)')
    groups.set(own, (groups.get(own) ?? 0) + rows)
  }
  const { groups: told, others: rest } = largestGroups([...groups], most, others)
  return { groups: told.toSorted((a, b) => b.rows - a.rows || (a.name < b.name ? -1 : 1)), others: rest }
}

// Control characters, and marks that turn the direction of writing.
const NOT_PLAIN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu

function reasonsOf({ runs }: Known): [string, number][] {
  const reasons = new Map<string, number>()
  for (const run of runs) {
    for (const [reason, items] of Object.entries(run.reasons)) {
      reasons.set(reason, (reasons.get(reason) ?? 0) + items)
    }
  }
  return [...reasons].map(([reason, items]) => [unlessSecret(reason), items])
}

function reportRun(run: Known['runs'][number]): ReportRun {
  return {
    started_at: run.started_at,
    finished_at: run.finished_at,
    // A run that left no closing line was killed.
    status: run.status ?? 'interrupted',
    rows: shown(run.rows),
    searches: run.requests,
    least: run.least,
    left: run.searchesRemaining,
    retries: run.retries,
    failures: run.failures,
    repeated: shown(run.repeated),
    quarantined: shown(run.quarantined),
    spillway: run.version,
  }
}
