import type { JournalEntry, OpenShardRecord, Prune } from '../core/index.ts'
import { standingLine } from './chain-record.ts'
import {
  type CheckpointState,
  type PartitionRecord,
  type RunFigures,
  withoutRows,
} from './checkpoint-state.ts'

/** What a rewrite leaves out: so that it is exported anew, or that it is no more. */
export type Omission = {
  /** By key. */
  readonly partitions: ReadonlySet<string>
  /** By number, open ones and finished ones. */
  readonly shards: ReadonlySet<number>
  /** By number. */
  readonly chains: ReadonlySet<number>
  /** Paths of finished shards whose files are to go. */
  readonly givenUp: readonly string[]
  /** Partitions, by key, that stay on record without their rows, and what is told of that; null: none. */
  readonly pruned: { readonly partitions: ReadonlySet<string>; readonly prune: Prune } | null
}

/** The fewest lines that come to this state, less what is left out. Requests count, whatever becomes of their pages. */
export function* snapshot(state: CheckpointState, without: Omission | null): Generator<JournalEntry> {
  yield state.header
  for (const [query, check] of state.secretChecks) yield { kind: 'secret', query, check }
  for (const [name, asks] of state.queries) yield { kind: 'query', name, asks }
  yield* runLines(state)
  for (const prune of state.prunes) yield { kind: 'prune', ...prune }
  const pruned = without?.pruned ?? null
  if (pruned !== null) yield { kind: 'prune', ...pruned.prune }
  for (const [partition, record] of state.partitions) {
    if (without?.partitions.has(partition) === true) continue
    const isPruned = pruned?.partitions.has(partition) === true
    yield partitionLine(partition, isPruned ? withoutRows(record) : record)
  }
  let isLess = false
  for (const shard of state.shards) {
    if (without?.shards.has(shard.shard) === true) isLess = true
    else yield { kind: 'seal', ...shard }
  }
  // What a shard's share of them was nobody knows any more; they are to be counted anew.
  const sums = state.sums()
  if (!isLess && sums.rows > 0) yield { kind: 'sums', ...sums }
  for (const shard of state.openShards.values()) {
    if (without?.shards.has(shard.shard) !== true) yield* openLines(shard)
  }
  for (const chain of state.chains.values()) {
    if (without?.chains.has(chain.chain) !== true) yield standingLine(chain)
  }
  yield* serviceLines(state)
  if (state.unknownFields.size > 0) yield { kind: 'unknown', fields: Object.fromEntries(state.unknownFields) }
  if (without === null) return
  // A crash may have come before those went that were given up earlier.
  const paths = new Set([...state.givenUp, ...without.givenUp])
  if (paths.size > 0) yield { kind: 'given-up', shards: [...paths] }
}

function* runLines({ runs }: CheckpointState): Generator<JournalEntry> {
  for (const { run, started_at, version, finished_at, status, requests, retries, months, ...more } of runs) {
    yield { kind: 'run', run, started_at, version }
    for (const { month, before, searches } of months) yield { kind: 'month', run, month, before, searches }
    const figures = figuresOf(more)
    const { least, searchesRemaining, reasons } = more
    const left = searchesRemaining === null ? {} : { searches_remaining: searchesRemaining }
    if (finished_at !== null && status !== null) {
      yield {
        kind: 'end',
        run,
        finished_at,
        status,
        requests,
        retries,
        ...left,
        ...figures,
        ...(least === null ? {} : { least }),
        ...(Object.keys(reasons).length === 0 ? {} : { reasons }),
      }
    } else if (requests > 0 || more.searches !== null || searchesRemaining !== null)
      yield { kind: 'cut', run, requests, ...left, ...figures }
  }
}

function* serviceLines({ service, searchesRemaining }: CheckpointState): Generator<JournalEntry> {
  const { pageSize, limit, limits, costs, times, tellsSearches } = service
  const size = pageSize === null ? {} : { page_size: pageSize }
  const tells = tellsSearches === null ? {} : { tells: tellsSearches }
  const left = searchesRemaining === null ? {} : { left: searchesRemaining }
  const isKnown = pageSize !== null || tellsSearches !== null || searchesRemaining !== null
  if (isKnown || costs.length > 0 || times.length > 0) {
    yield {
      kind: 'measured',
      costs: costs.map(([rows, searches]): [number, number] => [rows, searches]),
      times: times.map(([of, ms]): [number, number] => [of, ms]),
      ...tells,
      ...left,
      ...size,
      anew: true,
    }
  }
  for (const [query, own] of limits) yield { kind: 'limit', query, size: own }
  if (limit !== null || limits.size > 0) yield { kind: 'limit', query: null, size: limit }
}

function figuresOf({ rows, quarantined, repeated, failures, searches }: RunFigures) {
  return {
    ...(rows === 0 ? {} : { rows }),
    ...(quarantined === 0 ? {} : { quarantined }),
    ...(repeated === 0 ? {} : { repeated }),
    ...(failures === 0 ? {} : { failures }),
    ...(searches === null ? {} : { searches }),
  }
}

function partitionLine(partition: string, record: PartitionRecord): JournalEntry {
  const { state, rows, pages, requests, quarantined, repeated, quarantineEnd, error } = record
  return {
    kind: 'partition',
    partition,
    ...(state === 'done' ? {} : { state }),
    rows,
    pages,
    requests,
    quarantined,
    ...(repeated === 0 ? {} : { repeated }),
    ...(quarantineEnd === 0 ? {} : { quarantine_end: quarantineEnd }),
    ...(error === null ? {} : { error }),
  }
}

function* openLines({
  shard,
  folder,
  part,
  partitions,
  importedAt,
  chunks,
  generation,
  records,
}: OpenShardRecord): Generator<JournalEntry> {
  const holds = {
    partitions: [...partitions],
    imported_at: importedAt,
    generation,
    records: records.map(({ rows, end }): [number, number] => [rows, end]),
  }
  yield { kind: 'open', shard, folder, part, holds }
  yield* chunks
}
