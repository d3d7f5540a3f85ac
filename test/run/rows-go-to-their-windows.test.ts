import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type NamedQuery, type Order, type Window, WindowRun } from '../../src/core/index.ts'
import type { Slice } from '../../src/load/index.ts'
import { recordBatchOf } from '../../src/load/slice.ts'
import {
  type DecodedPage,
  decodeRecordBatch,
  encodeRecordBatch,
  type RejectedItem,
  type Times,
} from '../../src/rows/index.ts'
import type { SplitPage } from '../../src/run/follow/chain.ts'
import { splitByWindow } from '../../src/run/follow/pages/split-by-window.ts'
import { Search } from '../../src/run/follow/search.ts'
import { JournalFold } from '../../src/state/checkpoint/fold-journal.ts'
import { chainEntry, type JournalEntry } from '../../src/state/index.ts'
import { emptyPage } from '../extract/support.ts'
import { HEADER } from '../state/lines.ts'
import { cases } from '../support/thorough.ts'

const ACME: NamedQuery = { type: 'domain', fqdn: 'acme.example', name: 'domain.acme.example' }

const DAY = 86_400_000_000
const day = (number: number): number => Date.parse('2024-07-01T00:00:00Z') * 1000 + number * DAY

function windowsOf(order: Order, days: readonly number[]): WindowRun {
  return WindowRun.of(
    order,
    days.slice(1).map((until, i): Window => ({ from: day(days[i]!), until: day(until) })),
  )
}

const CHAIN = 3

function chainOver(windows: WindowRun, ...entries: readonly JournalEntry[]): Search {
  const fold = new JournalFold(HEADER)
  fold.apply(entries, fold.logEnd, [])
  const journal = { state: fold, read: async () => null, append: async () => {} }
  return new Search({ journal, chain: CHAIN, query: ACME, windows, wanted: windows.count, schema: 0 })
}

/** A page whose rows have their indexes as ids. */
function pageOf(
  times: Times | null,
  count = times?.length ?? 0,
  rejected: readonly RejectedItem[] = [],
): DecodedPage {
  const ids = Float64Array.from({ length: count }, (_, row) => row)
  const column = { name: 'id', group: null, values: { kind: 'number', values: ids, valid: null } } as const
  const recordBatch = count === 0 ? null : encodeRecordBatch({ rows: count, groups: [], columns: [column] })
  return emptyPage({ recordBatch, rows: count, items: count + rejected.length, times, quarantined: rejected })
}

async function split(
  page: DecodedPage,
  chain: Search,
  folder: (index: number) => string = String,
): Promise<SplitPage> {
  return splitByWindow({ page, requests: 2, size: 10, ms: 1 }, chain, folder)
}

/** The rows of a slice, by their indexes on the page. */
function rowsOf(slice: Slice): number[] {
  const [column] = decodeRecordBatch(recordBatchOf(slice)).columns
  return column?.values.kind === 'number' ? [...column.values.values] : []
}

/** Each row of a page with its folder and its partition. */
function destinations({ slices }: SplitPage): Map<number, { folder: string; partition: string }> {
  const found = new Map<number, { folder: string; partition: string }>()
  for (const slice of slices) {
    const rows = rowsOf(slice)
    const partitions = slice.ranges.flatMap(({ partition, rows }) => Array<string>(rows).fill(partition))
    expect(partitions).toHaveLength(rows.length)
    for (const [i, row] of rows.entries()) {
      expect(found.has(row)).toBe(false)
      found.set(row, { folder: slice.folder, partition: partitions[i]! })
    }
  }
  return found
}

const hours = (...numbers: readonly number[]) => Float64Array.from(numbers, (n) => day(0) + (n * DAY) / 24)

describe('the rows of a page', () => {
  it('of forgotten people are counted in their windows, unless another chain has these now', async () => {
    const windows = windowsOf('asc', [0, 1, 2, 3])
    const page = { ...pageOf(hours(1)), forgotten: [...hours(2, 25, 26, 49, 73), null] }
    // One without a time belongs to the current window.
    const { forgotten } = await split(page, chainOver(windows))
    expect(forgotten).toEqual(
      new Map([
        [0, 2],
        [1, 2],
        [2, 1],
      ]),
    )
    const shorter = await split(page, chainOver(windows.part(0, 2)))
    expect(shorter.forgotten).toEqual(
      new Map([
        [0, 2],
        [1, 2],
      ]),
    )
  })

  it('long before the days of exact doubles go to their windows to the microsecond', async () => {
    const years = [1600, 1601, 1602, 1603].map((year) => BigInt(Date.UTC(year, 0)) * 1000n)
    const windows = new WindowRun('asc', Float64Array.from(years, Number))
    const found: Record<string, readonly string[]> = {}
    const expected: Record<string, readonly string[]> = {}
    for (const [i, year] of years.entries()) {
      for (const at of [year - 1n, year, year + 1n]) {
        const index = at < year ? i - 1 : i
        // Alone on its page.
        const { slices } = await split(pageOf(BigInt64Array.of(at)), chainOver(windows))
        found[`${at}`] = slices.map(({ folder }) => folder)
        expected[`${at}`] = index < 0 || index > 2 ? [] : [String(index)]
      }
    }
    expect(found).toEqual(expected)
  })

  it('each go to exactly their window, whatever the order, the windows and the folders', async () => {
    const world = fc.record({
      order: fc.constantFrom<Order>('asc', 'desc'),
      lengths: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 10 }),
      folders: fc.integer({ min: 1, max: 10 }),
      sorting: fc.constantFrom('asc', 'desc', 'none'),
      isLarge: fc.boolean(),
      times: fc.array(fc.tuple(fc.integer({ min: -3, max: 53 }), fc.constantFrom(-1, 0, 1, DAY / 2)), {
        maxLength: 60,
      }),
    })
    await fc.assert(
      fc.asyncProperty(world, async ({ order, lengths, folders, sorting, isLarge, times }) => {
        const days = [0]
        for (const length of lengths) days.push(days.at(-1)! + length)
        const chain = chainOver(windowsOf(order, days))
        const instants = times.map(([number, off]) => day(number) + off)
        if (sorting !== 'none') instants.sort((a, b) => (sorting === 'asc' ? a - b : b - a))
        const column = isLarge ? BigInt64Array.from(instants, BigInt) : Float64Array.from(instants)
        const folderOf = (index: number): string => `folder ${index % folders}`
        const found = await split(pageOf(column), chain, folderOf)

        const expected = new Map<number, { folder: string; partition: string }>()
        const counts = new Map<number, number>()
        for (const [row, at] of instants.entries()) {
          for (let index = 0; index < chain.windows.count; index++) {
            const window = chain.windows.at(index)!
            if (at < window.from || at >= window.until) continue
            expected.set(row, { folder: folderOf(index), partition: chain.partitionAt(index).key })
            counts.set(index, (counts.get(index) ?? 0) + 1)
          }
        }
        expect(destinations(found)).toEqual(expected)
        expect(found.rows).toEqual(counts)
        // A folder is one slice, in the order of the page, and so are the slices among themselves.
        const slices = found.slices.map(rowsOf)
        for (const rows of slices) expect(rows).toEqual(rows.toSorted((a, b) => a - b))
        const firsts = slices.map((rows) => rows[0]!)
        expect(firsts).toEqual(firsts.toSorted((a, b) => a - b))
        expect(new Set(found.slices.map(({ folder }) => folder)).size).toBe(slices.length)
      }),
      { numRuns: cases(1000, 100) },
    )
  })
})

it('quarantined items go to the current window of the chain if they have no valid time, or one in no window', async () => {
  const windows = windowsOf('asc', [0, 1, 2, 3])
  const begin = chainEntry(CHAIN, ACME.name, windows)
  const page: JournalEntry = { kind: 'page', chain: CHAIN, next: 'c', requests: 1, watermark: 1 }
  const items = [null, day(2), day(9), day(0)].map(
    (at, index): RejectedItem => ({ at, index, id: null, issues: [], item: {} }),
  )
  const chain = chainOver(windows, begin, page)
  const { rejected, slices, rows } = await split(pageOf(new Float64Array(0), 0, items), chain)
  expect([slices, rows.size]).toEqual([[], 0])
  const indexes = [...rejected].map(([window, items]) => [window, items.map(({ index }) => index)])
  expect(Object.fromEntries(indexes)).toEqual({ 0: [3], 1: [0, 2], 2: [1] })
})
