import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Order, type Window, WindowRun } from '../../src/core/index.ts'

const order = fc.constantFrom<Order>('asc', 'desc')
/** Adjacent windows, in ascending order. */
const windows: fc.Arbitrary<Window[]> = fc
  .uniqueArray(fc.integer({ min: -30, max: 30 }), { minLength: 2, maxLength: 12 })
  .map((instants) => {
    const bounds = instants.toSorted((a, b) => a - b)
    return bounds.slice(1).map((until, index) => ({ from: bounds[index]!, until }))
  })
const anyRun = fc.record({ order, windows })
const instant = fc.integer({ min: -35, max: 35 })

function inOrder(travel: Order, ascending: readonly Window[]): readonly Window[] {
  return travel === 'asc' ? ascending : ascending.toReversed()
}

function windowsOf(run: WindowRun): (Window | null)[] {
  return Array.from({ length: run.count }, (_, index) => run.at(index))
}

describe('adjacent windows', () => {
  it('are read in the order of the chain', () => {
    fc.assert(
      fc.property(anyRun, (given) => {
        const run = WindowRun.of(given.order, given.windows)
        expect(run.order).toBe(given.order)
        expect(windowsOf(run)).toEqual(inOrder(given.order, given.windows))
        expect(run.range).toEqual({ from: given.windows[0]!.from, until: given.windows.at(-1)!.until })
      }),
    )
  })

  it('have one index for every instant of their range', () => {
    fc.assert(
      fc.property(anyRun, instant, (given, at) => {
        const run = WindowRun.of(given.order, given.windows)
        const { from, until } = run.range!
        fc.pre(at >= from && at < until)
        const holding = windowsOf(run).map((window) => window!.from <= at && at < window!.until)
        expect(holding.filter(Boolean)).toHaveLength(1)
        expect(run.indexOfInstant(at)).toBe(holding.indexOf(true))
      }),
      { numRuns: 300 },
    )
  })

  it('are below the watermark once no row in order can fall into them', () => {
    fc.assert(
      fc.property(anyRun, instant, (given, last) => {
        const run = WindowRun.of(given.order, given.windows)
        // After a row can come rows of the same time, and rows beyond it.
        const isPassed = ({ from, until }: Window): boolean =>
          given.order === 'asc' ? until <= last : from > last
        const passed = windowsOf(run).map((window) => isPassed(window!))
        expect(passed).toEqual(passed.toSorted((a, b) => Number(b) - Number(a)))
        expect(run.watermarkAt(last)).toBe(passed.filter(Boolean).length)
      }),
      { numRuns: 500 },
    )
  })

  it('are the same after they are split and joined again', () => {
    const cut = anyRun.chain((given) =>
      fc.record({
        given: fc.constant(given),
        ends: fc
          .tuple(fc.nat({ max: given.windows.length }), fc.nat({ max: given.windows.length }))
          .map((ends) => ends.toSorted((a, b) => a - b)),
      }),
    )
    fc.assert(
      fc.property(cut, instant, ({ given, ends: [from, to] }, at) => {
        const run = WindowRun.of(given.order, given.windows)
        const part = run.part(from!, to!)
        expect(part.order).toBe(given.order)
        expect(part.count).toBe(to! - from!)
        expect(windowsOf(part)).toEqual(windowsOf(run).slice(from, to))
        expect(windowsOf(part.part(0, part.count))).toEqual(windowsOf(part))
        const parts = [run.part(0, from!), part, run.part(to!, run.count)]
        expect(parts.flatMap(windowsOf)).toEqual(windowsOf(run))
        const { range } = part
        expect(range === null).toBe(part.count === 0)
        if (range === null) return
        if (at >= range.from && at < range.until)
          expect(part.indexOfInstant(at)).toBe(run.indexOfInstant(at) - from!)
        expect(part.watermarkAt(at)).toBe(Math.min(Math.max(run.watermarkAt(at) - from!, 0), part.count))
      }),
      { numRuns: 300 },
    )
  })
})

it.each<Order>(['asc', 'desc'])(
  'a query without windows is one partition, which ends with the last page: %s',
  (travel) => {
    const run = WindowRun.of(travel, [null])
    expect([run.count, run.range, run.at(0), run.bounds]).toEqual([1, null, null, null])
    for (const at of [-1e15, 0, 1e15]) {
      expect(run.indexOfInstant(at)).toBe(0)
      expect(run.watermarkAt(at)).toBe(0)
    }
    expect(windowsOf(run.part(0, 1))).toEqual([null])
  },
)
