import { expect } from 'vitest'
import { type CheckpointState, type JournalEntry, presentOf, sumOfPartitions } from '../../src/state/index.ts'
import { factsOf, type JournalLine } from './lines.ts'

/** The figures of each partition are the sums of what the entries say about it. */
export function expectFigures(state: CheckpointState, lines: readonly JournalLine[]): void {
  const entries = factsOf(lines)
  const of = <K extends JournalEntry['kind']>(kind: K) =>
    entries.filter((entry): entry is Extract<JournalEntry, { kind: K }> => entry.kind === kind)
  const pages = of('page')
  const queries = new Map(of('chain').map(({ chain, query }) => [chain, query]))
  const figures = new Map(
    [...state.partitions].map(([key]) => [key, { rows: 0, quarantined: 0, forgotten: 0 }]),
  )
  for (const { chain, slices = [], quarantine = [], forgotten = [] } of pages) {
    const partition = (window: string) => figures.get(`${queries.get(chain)}/${window}`)!
    for (const { window, rows } of slices) partition(window).rows += rows
    for (const { window, items } of quarantine) partition(window).quarantined += items
    for (const { window, items } of forgotten) partition(window).forgotten += items
  }
  for (const [key, { rows, quarantined, forgotten }] of state.partitions)
    expect({ rows, quarantined, forgotten }, key).toEqual(figures.get(key))
  expect(sumOfPartitions(state).repeated).toBe(sum(pages.map(({ repeated = 0 }) => repeated)))
  const present = [...state.partitions].map(([key]) => presentOf(state, key)!)
  const requests = [...pages, ...of('failed')].map(({ requests }) => requests)
  expect(sum(present.map(({ requests }) => requests))).toBe(sum(requests))
  expect(sum([...state.partitions].map(([, each]) => each.pages))).toBe(pages.length)
}

/** The figures of partitions and those of shards are kept separately, and must be equal. */
export function expectRowsToBeInShards({ partitions, shards, openShards }: CheckpointState): void {
  const waiting = [...openShards.values()].flatMap(({ batches }) => batches)
  const known = sum([...partitions].map(([, { rows }]) => rows))
  expect(known).toBe(sum([...shards, ...waiting].map(({ rows }) => rows)))
  for (const { partitions: within } of [...shards, ...openShards.values()])
    for (const key of within) expect(partitions.get(key)?.rows ?? 0).toBeGreaterThan(0)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
