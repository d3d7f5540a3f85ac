import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isExportError, type Order, type Window, WindowRun, windowRange } from '../../../src/core/index.ts'
import {
  type Begun,
  type BegunChain,
  type Plan,
  type PlannedChain,
  planPartitions,
} from '../../../src/pipeline/index.ts'
import { cases as casesOf } from '../../support/thorough.ts'
import { at, type BegunWindow, begunOf, domain, HOUR, NOW, pipelineOf, type Wanted } from './pipeline.ts'

const START = at('2024-01-01')
const ORDERS: Order[] = ['asc', 'desc']

function hours(from: number, until: number): Window {
  return { from: START + from * HOUR, until: START + until * HOUR }
}

function windowsOf(windows: WindowRun): (Window | null)[] {
  return Array.from({ length: windows.count }, (_, index) => windows.at(index))
}

function hourly(from: number, until: number): Window[] {
  return Array.from({ length: until - from }, (_, index) => hours(from + index, from + index + 1))
}

/** One of an hour for each, from one hour to another. */
function every(from: number, until: number, count = 1): NonNullable<Wanted['windows']> {
  return { from: START + from * HOUR, until: START + until * HOUR, every: { unit: 'hour', count }, lagMs: 0 }
}

function planOf(wanted: Wanted, begun: Begun | null = null): Plan {
  return planPartitions(pipelineOf(wanted), NOW, () => begun)
}

type History = {
  readonly windows: readonly BegunWindow[]
  readonly chains: readonly BegunChain[]
  readonly end: number
}

/** The possible state after earlier runs of a query: windows that are done, windows that failed half way, and chains. */
function someHistory(order: Order, canReopen: boolean): fc.Arbitrary<History> {
  const part = fc.record({
    gap: fc.oneof(fc.constant(0), fc.nat({ max: 4 })),
    /** Hours of windows that follow each other. */
    lengths: fc.array(fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 3 })), {
      minLength: 1,
      maxLength: 6,
    }),
    what: fc.constantFrom('done' as const, 'half' as const, 'chain' as const, 'chain' as const),
    watermark: fc.nat({ max: 5 }),
    hasRows: fc.boolean(),
    reopened: canReopen ? fc.nat({ max: 12 }) : fc.constant(null),
  })
  return fc.array(part, { maxLength: 4 }).map((parts) => {
    let hour = 0
    const windows: BegunWindow[] = []
    const chains: BegunChain[] = []
    for (const { gap, lengths, what, watermark: far, hasRows, reopened } of parts) {
      hour += gap
      const own = lengths.map((length) => {
        hour += length
        return hours(hour - length, hour)
      })
      if (what !== 'chain') {
        windows.push(...own.map((window) => ({ window, done: what === 'done' })))
        continue
      }
      const run = WindowRun.of(order, own)
      const watermark = far % run.count
      for (let index = 0; index < watermark; index++)
        windows.push({ window: run.at(index), done: index !== reopened })
      if (hasRows) windows.push({ window: run.at(watermark), done: false })
      chains.push({ chain: chains.length, windows: run, watermark })
    }
    return { windows, chains, end: hour }
  })
}

const someWanted = fc.record({
  from: fc.integer({ min: -3, max: 12 }),
  length: fc.integer({ min: 1, max: 40 }),
  count: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 5 })),
  perChain: fc.option(fc.integer({ min: 1, max: 4 })),
})

type Case = {
  readonly order: Order
  readonly history: History
  readonly plan: Plan
  readonly perChain: number | null
}

function cases(canReopen: boolean): fc.Arbitrary<Case | null> {
  return fc.constantFrom(...ORDERS).chain((order) =>
    fc
      .tuple(someHistory(order, canReopen), someWanted)
      .map(([history, { from, length, count, perChain }]) => {
        const windows = { ...every(from, from + length, count), perChain }
        try {
          return {
            order,
            history,
            plan: planOf({ windows, order }, begunOf(history.windows, history.chains)),
            perChain,
          }
        } catch (error) {
          // This would divide a window that is half exported.
          if (!isExportError(error, 'config')) throw error
          return null
        }
      }),
  )
}

function overlap(a: Window | null, b: Window | null): boolean {
  return a === null || b === null || (a.from < b.until && b.from < a.until)
}

function openOf({ plan, history }: Case): Map<string, Window | null> {
  const done = new Set(history.windows.flatMap(({ window, done }) => (done ? [windowRange(window)] : [])))
  const open = [...plan.partitions()].map(({ window }) => [windowRange(window), window] as const)
  return new Map(open.filter(([name]) => !done.has(name)))
}

type NewChain = Extract<PlannedChain, { kind: 'new' }>
type BegunAgain = Extract<PlannedChain, { kind: 'begun' }>

function expectEachWindowOnce(planned: Case): void {
  const { history, plan } = planned
  const all = [...plan.chains()]
  const fresh = all.filter((chain): chain is NewChain => chain.kind === 'new')
  const again = all.filter((chain): chain is BegunAgain => chain.kind === 'begun')
  const open = openOf(planned)
  const taken = new Map<string, number>()
  const take = (window: Window | null): void => {
    taken.set(windowRange(window), (taken.get(windowRange(window)) ?? 0) + 1)
  }
  for (const { windows } of fresh) for (const window of windowsOf(windows)) take(window)
  for (const { chain, wanted } of again)
    for (const window of windowsOf(history.chains[chain]!.windows).slice(0, wanted))
      if (open.has(windowRange(window))) take(window)
  expect(new Map([...taken].sort())).toEqual(new Map([...open.keys()].sort().map((name) => [name, 1])))
  // Windows that chains keep block no other, also for queries outside the plan.
  for (const { chain, windows } of history.chains) {
    const { keep = null, wanted = 0 } = again.find((one) => one.chain === chain) ?? {}
    const kept = windowsOf(windows).slice(0, keep ?? windows.count)
    expect(wanted).toBeLessThanOrEqual(kept.length)
    for (const window of kept)
      for (const other of fresh) expect(overlap(window, other.windows.range)).toBe(false)
  }
}

describe('the chains of a plan', () => {
  it('cover each window once, whatever earlier runs and late rows have left, and whatever is wanted now', () => {
    fc.assert(
      fc.property(cases(true), (planned) => {
        fc.pre(planned !== null)
        expectEachWindowOnce(planned)
      }),
      { numRuns: casesOf(1000, 100) },
    )
  })

  it('are as few as possible: each is as long as possible', () => {
    fc.assert(
      fc.property(cases(false), (planned) => {
        fc.pre(planned !== null)
        const { history, plan, order, perChain } = planned
        const open = openOf(planned)
        const ranges: Window[] = []
        for (const chain of plan.chains()) {
          if (chain.kind === 'new') {
            expect(chain.windows.order).toBe(order)
            expect(chain.windows.count).toBeGreaterThan(0)
            expect(chain.windows.count).toBeLessThanOrEqual(perChain ?? Number.POSITIVE_INFINITY)
            ranges.push(chain.windows.range!)
            continue
          }
          // They come before new ones.
          expect(ranges).toEqual([])
          const { windows, watermark } = history.chains[chain.chain]!
          const isOpen = (index: number): boolean => open.has(windowRange(windows.at(index)))
          // It is unchanged unless it is followed or releases something.
          expect(chain.wanted > 0 || chain.keep !== null).toBe(true)
          expect(chain.keep ?? windows.count).toBeGreaterThanOrEqual(watermark)
          expect(chain.keep ?? 0).toBeLessThan(windows.count)
          expect(chain.wanted > watermark).toBe(isOpen(watermark))
          if (!isOpen(watermark)) expect(chain.wanted).toBe(0)
          for (let index = watermark; index < chain.wanted; index++) expect(isOpen(index)).toBe(true)
          if (chain.wanted > 0 && chain.wanted < windows.count) expect(isOpen(chain.wanted)).toBe(false)
        }
        const starts = ranges.map(({ from }) => from)
        expect(starts).toEqual(starts.toSorted((a, b) => (order === 'asc' ? a - b : b - a)))
        if (perChain !== null) return
        // Two adjacent ones would be one.
        for (const { until } of ranges) expect(starts).not.toContain(until)
      }),
      { numRuns: casesOf(500, 60) },
    )
  })
})

const queries = Array.from({ length: 10_000 }, (_, number) => domain(`d${number}.com`))
const windows = every(0, 100)

/** A plan, and the number of times that it read the state of a query. */
function counted(begun: (query: string) => Begun | null): { plan: Plan; reads: () => number } {
  let reads = 0
  const plan = planPartitions(pipelineOf({ queries, windows }), NOW, (query) => {
    reads++
    return begun(query)
  })
  return { plan, reads: () => reads }
}

it('the chains of a plan of a million partitions skip queries that are done, with one read of the state for each', () => {
  const done = begunOf(hourly(0, 100).map((window) => ({ window, done: true })))
  const { plan, reads } = counted((query) => (query === 'domain.d9999.com' ? null : done))
  const before = reads()
  const chains = [...plan.chains()]
  expect(chains.map(({ query }) => query.name)).toEqual(['domain.d9999.com'])
  expect(reads()).toBe(before + queries.length)
})
