import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isExportError, type Partition, type Window } from '../../../src/core/index.ts'
import { planPartitions } from '../../../src/pipeline/index.ts'
import { type BegunQueries, splitWindows } from '../../../src/pipeline/plan/plan.ts'
import { cases } from '../../support/thorough.ts'
import { at, type BegunWindow, begunOf, HOUR, NOW, pipelineOf } from './pipeline.ts'

const begunAs =
  (windows: readonly BegunWindow[]): BegunQueries =>
  () =>
    begunOf(windows)

function windowsOf(partitions: Iterable<Partition>): Window[] {
  return [...partitions].map(({ window }) => {
    if (window === null) throw new Error('a partition without window')
    return window
  })
}

const window = (from: string, until: string): Window => ({ from: at(from), until: at(until) })

const monthly = {
  from: at('2024-01-01'),
  until: at('2024-04-01'),
  every: { unit: 'month' as const },
  lagMs: 0,
}

/** Disjoint windows in order, some of them done, with gaps between some; and the end of the last. */
const someBegun = fc
  .array(
    fc.record({ gap: fc.nat({ max: 40 }), hours: fc.integer({ min: 1, max: 60 }), done: fc.boolean() }),
    { maxLength: 8 },
  )
  .map((parts) => {
    let from = at('2024-01-01')
    return parts.map(({ gap, hours, done }): BegunWindow & { window: Window } => {
      from += gap * HOUR
      const made = { window: { from, until: from + hours * HOUR }, done }
      from = made.window.until
      return made
    })
  })
const someSettings = fc
  .record({
    start: fc.integer({ min: -50, max: 200 }),
    hours: fc.integer({ min: 1, max: 400 }),
    count: fc.option(fc.integer({ min: 1, max: 80 })),
  })
  .map(({ start, hours, count }) => {
    const from = at('2024-01-01') + start * HOUR
    const every = count === null ? null : { unit: 'hour' as const, count }
    return { from, until: from + hours * HOUR, every, lagMs: 0 }
  })

describe('windows that overlap those of earlier runs', () => {
  it('cover every wanted instant exactly once, and windows that have begun keep their shape', () => {
    fc.assert(
      fc.property(someBegun, someSettings, (begun, windows) => {
        const wanted = splitWindows({ perChain: null, ...windows }, NOW)
        const isCut = begun.some(
          ({ window: { from, until }, done }) =>
            !done &&
            until > windows.from &&
            from < windows.until &&
            (from < windows.from || until > windows.until) &&
            !wanted.some((other) => other.from === from && other.until === until),
        )
        const plan = () => planPartitions(pipelineOf({ windows }), NOW, begunAs(begun))
        if (isCut) {
          expect(plan).toThrow(expect.toSatisfy((error) => isExportError(error, 'config')))
          return
        }
        const planned = windowsOf(plan().partitions())
        expect(planned.map(({ from }) => from)).toEqual(
          planned.map(({ from }) => from).toSorted((a, b) => a - b),
        )
        // Windows outside the wanted range stay as they are; together they have no gap and no overlap.
        const other = begun
          .map((one) => one.window)
          .filter(({ from, until }) => !planned.some((p) => p.from === from && p.until === until))
        for (const { from, until } of other) expect(until <= windows.from || from >= windows.until).toBe(true)
        const all = [...planned, ...other].sort((a, b) => a.from - b.from)
        for (const [index, { from }] of all.entries())
          if (index > 0) expect(from).toBeGreaterThanOrEqual(all[index - 1]?.until ?? 0)
        // Every boundary is on a full hour, so the hours stand for all instants.
        const times: number[] = []
        for (let hour = windows.from; hour < windows.until; hour += HOUR)
          times.push(planned.filter(({ from, until }) => from <= hour && hour < until).length)
        expect(new Set(times)).toEqual(new Set([1]))
        for (const one of begun) {
          if (one.window.until <= windows.from || one.window.from >= windows.until) continue
          expect(planned).toContainEqual(one.window)
        }
      }),
      { numRuns: cases(900, 100) },
    )
  })

  it('are unchanged when everything is planned: planning is stable', () => {
    fc.assert(
      fc.property(someBegun, someSettings, (begun, windows) => {
        const done = begun.map((one) => ({ ...one, done: true }))
        const first = windowsOf(planPartitions(pipelineOf({ windows }), NOW, begunAs(done)).partitions())
        const again = [...done, ...first.map((window) => ({ window, done: true }))]
        const second = windowsOf(planPartitions(pipelineOf({ windows }), NOW, begunAs(again)).partitions())
        expect(second).toEqual(first)
      }),
    )
  })

  // What is said: missing-settings-are-named.
  it.each([
    ['without windows, and now with', monthly, null],
    ['with windows, and now without', null, window('2024-01-01', '2024-02-01')],
  ])('are refused when the query was exported %s', (_, windows, begun) => {
    const plan = () => planPartitions(pipelineOf({ windows }), NOW, begunAs([{ window: begun, done: true }]))
    expect(plan).toThrow(expect.toSatisfy((error) => isExportError(error, 'config')))
  })
})
