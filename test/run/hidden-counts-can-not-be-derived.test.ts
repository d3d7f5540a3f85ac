import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Aggregates, type NamedPipeline, unlessSecret } from '../../src/core/index.ts'
import { namePipeline } from '../../src/data-set/queries.ts'
import { gatherSummaryPage } from '../../src/data-set/summary-page/gather-summary-page.ts'
import type { Known } from '../../src/data-set/summary-page/known.ts'
import { pipelineFrom } from '../../src/index.ts'
import { heatTable } from '../../src/report/heat-table.ts'
import type { Between, SummaryPageData } from '../../src/report/index.ts'
import { NEW_RUN } from '../../src/state/index.ts'
import { cases } from '../support/thorough.ts'

const LEAST = 5
const MANY = 1e9

/** The range in which a reader knows a number to be. */
type Range = { readonly low: number; readonly high: number }

/** The ranges of the parts of a total, given what the report shows of them and of the total. */
function solved(parts: readonly Range[], total: Range): readonly Range[] {
  const low = parts.reduce((sum, part) => sum + part.low, 0)
  const high = parts.reduce((sum, part) => sum + part.high, 0)
  return parts.map((part) => ({
    low: Math.max(part.low, total.low - (high - part.high)),
    high: Math.min(part.high, total.high - (low - part.low)),
  }))
}

const exactly = (count: number): Range => ({ low: count, high: count })
const rangeOf = (count: number | null): Range => (count === null ? { low: 1, high: MANY } : exactly(count))
const ofClass = (index: number): Range =>
  index === 0 ? exactly(0) : { low: 10 ** (index - 1), high: index === 7 ? MANY : 10 ** index - 1 }

const between = (cell: Between | null): Range =>
  cell === null ? exactly(0) : { low: cell.least, high: cell.most ?? MANY }

type World = {
  readonly runs: readonly { rows: number; quarantined: number; repeated: number }[]
  readonly cells: readonly number[]
  readonly counted: number
  readonly reasons: readonly number[]
}

const few = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 6 }), fc.integer({ min: 7, max: 200 }))

/** The rows of the runs are those of the partitions, as they are if nothing was invalidated. */
const worlds: fc.Arbitrary<World> = fc
  .record({
    runs: fc.array(fc.record({ rows: few, quarantined: few, repeated: few }), {
      minLength: 1,
      maxLength: 24,
    }),
    cuts: fc.array(fc.nat(), { maxLength: 6 }),
    missing: fc.oneof(fc.constant(0), fc.nat(6)),
    reasons: fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 5 }),
  })
  .map(({ runs, cuts, missing, reasons }) => {
    const rows = sum(runs.map((run) => run.rows))
    const cutPoints = [0, ...cuts.map((cut) => (rows === 0 ? 0 : cut % (rows + 1))), rows].sort(
      (a, b) => a - b,
    )
    const cells = cutPoints.slice(1).map((index, i) => index - cutPoints[i]!)
    return { runs, cells, counted: Math.max(0, rows - missing), reasons }
  })

const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0)

/** A window of one day, the first of them the 20,000th since 1970. */
const day = (i: number): string =>
  [i, i + 1].map((i) => new Date((20_000 + i) * 86_400_000).toISOString().slice(0, 10)).join('..')

function knownOf({ runs, cells, counted, reasons }: World, reported: number | null = null): Known {
  const aggregates: Aggregates = {
    rows: counted,
    days: { counts: counted === 0 ? [] : [[19_000, counted]], others: 0 },
    sources: { counts: counted === 0 ? [] : [['a', counted]], others: 0 },
    hash_types: { counts: [], others: counted },
    nulls: { hash: counted >> 1 },
  }
  return {
    from: 'checkpoint',
    newQueries: new Set(),
    configDigest: 'ab',
    runs: runs.map((run, i) => ({
      ...NEW_RUN,
      ...run,
      started_at: '2024-01-01T00:00:00Z',
      version: '1.0.0',
      months: [],
      ...(i > 0
        ? {}
        : { reasons: Object.fromEntries(reasons.map((items, n) => [`field${n}: wrong`, items])) }),
    })),
    quarantined: sum(runs.map((run) => run.quarantined)),
    repeated: sum(runs.map((run) => run.repeated)),
    aggregates,
    failed: [],
    complete: true,
    progress: null,
    reported,
    leftOut: {
      quarantined: sum(runs.map((run) => run.quarantined)),
      quarantined_partitions: 1,
      beyond_limit: 0,
      max_quarantined: '1%',
      reasons: [],
      forgotten: 0,
      pruned: null,
    },
    *partitions() {
      for (const [i, rows] of cells.entries())
        yield { query: 'domain.acme.example', window: day(i), rows, state: 'done' }
    },
    *shards() {
      for (const [i, rows] of cells.entries()) {
        if (rows > 0) yield { path: `credentials/${i}`, rows, bytes: 100, sha256: 'cd' }
      }
    },
  }
}

/** What any reader of the report can calculate. */
function expectNothingRevealed(world: World, { rows: result, runs: history, shards }: SummaryPageData): void {
  const files = world.cells.filter((rows) => rows > 0)
  const groups = [result.timeline, result.sources, result.hash_types]
  const ofGroups = groups.flatMap(({ groups, others }) => {
    const parts = [...groups.map(({ rows }) => exactly(rows)), rangeOf(others)]
    return groups.length === 0 && others === 0
      ? []
      : [{ low: sum(parts.map(({ low }) => low)), high: sum(parts.map(({ high }) => high)) }]
  })
  const listed = history.runs.length
  const unlisted: Range = history.runs_total > listed ? { low: 0, high: MANY } : exactly(0)
  const parts = {
    runs: [...history.runs.map(({ rows }) => rangeOf(rows)), unlisted],
    files: shards.map(({ rows }) => ofClass(rows)),
    cells: result.heat?.rows[0]?.cells.map((cell) => between(cell)) ?? [],
  }
  const total = result.rows === null ? { low: 1, high: result.rows_at_most ?? MANY } : exactly(result.rows)
  // The total of all of them narrows it down.
  const known = [total, ...(result.counted_rows === result.rows ? ofGroups : [])].reduce((all, range) => ({
    low: Math.max(all.low, range.low),
    high: Math.min(all.high, range.high),
  }))
  const lastRuns = world.runs.slice(-listed)
  expectHidden(
    parts.runs,
    known,
    lastRuns.map((run) => run.rows),
  )
  expectHidden(parts.files, known, files)
  expectHidden(parts.cells, known, world.cells)
  for (const name of ['quarantined', 'repeated'] as const) {
    const counts = [...history.runs.map((run) => rangeOf(run[name])), unlisted]
    const all = sum(world.runs.map((run) => run[name]))
    const total = result[name] === null ? { low: all === 0 ? 0 : 1, high: MANY } : exactly(result[name])
    expectHidden(
      counts,
      total,
      lastRuns.map((run) => run[name]),
    )
  }
  const reasons = history.reasons.groups.map(({ rows }) => rangeOf(rows))
  const items = history.reasons.groups.every(({ rows }) => rows !== null) ? null : sum(world.reasons)
  if (items !== null && result.quarantined !== null) expectHidden(reasons, exactly(items), world.reasons)
  // The groups that the count omits are a group as well.
  if (result.rows !== null && result.counted_rows !== null && result.counted_rows !== result.rows) {
    expect(result.rows - result.counted_rows).toBeGreaterThanOrEqual(LEAST)
  }
}

function expectHidden(parts: readonly Range[], total: Range, counts: readonly number[]): void {
  const found = solved(parts, total)
  for (const [i, count] of counts.entries()) {
    if (count === 0 || count >= LEAST) continue
    const { low, high } = found[i]!
    // A reader cannot exclude that it is five or more, and at least five values are possible.
    expect(high, `${count} is known to be ${low} to ${high}`).toBeGreaterThanOrEqual(LEAST)
    expect(high - low, `${count} is known to be ${low} to ${high}`).toBeGreaterThanOrEqual(LEAST - 1)
  }
}

const AROUND = {
  nowMs: 0,
  version: '1.0.0',
  retired: 0,
  host: null,
  signature: { manifest: null, signed: false },
}

const PIPELINE: NamedPipeline = namePipeline(
  await pipelineFrom(
    {
      name: 'trial',
      service: { base_url: 'https://api.example.com/firework' },
      extract: { domains: ['acme.example'] },
    },
    { env: {}, cwd: '/' },
  ),
  null,
)

it('a calculation with everything in a report does not reveal a count below 5', () => {
  fc.assert(
    fc.property(worlds, (world) => {
      const report = gatherSummaryPage(PIPELINE, knownOf(world), AROUND)
      expectNothingRevealed(world, report)
    }),
    { numRuns: cases(1000, 250) },
  )
})

it('after runs with 100 and 2 rows no total is shown, nor of 11 rows in classes 10–99 and 1–9', () => {
  const run = (rows: number) => ({ rows, quarantined: rows, repeated: rows })
  const report = (runs: number[], cells: number[]) =>
    gatherSummaryPage(
      PIPELINE,
      knownOf({ runs: runs.map(run), cells, counted: sum(cells), reasons: [] }),
      AROUND,
    )
  const two = report([100, 2], [102])
  expect(two.rows).toMatchObject({ rows: null, rows_at_most: 110, quarantined: null, repeated: null })
  expect(two.rows.new_rows).toBe(null)
  const eleven = report([11], [10, 1])
  expect(eleven.rows).toMatchObject({ rows: null, rows_at_most: 20, counted_rows: null, new_rows: null })
  expect(eleven.rows.sources).toEqual({ groups: [], others: 0 })
  // If nothing is small, everything is shown.
  const open = report([100, 20], [60, 60])
  expect(open.rows).toMatchObject({ rows: 120, rows_at_most: null, counted_rows: 120, new_rows: 20 })
})

it('all reasons are named, whatever their number and however few items they have', () => {
  const reasons = Array.from({ length: 30 }, (_, i) => i + 1)
  const world = { runs: [{ rows: 0, quarantined: 465, repeated: 0 }], cells: [], counted: 0, reasons }
  const { runs: history } = gatherSummaryPage(PIPELINE, knownOf(world), AROUND)
  expect(history.reasons.groups.map(({ name }) => name)).toEqual(reasons.map((_, i) => `field${i}: wrong`))
  expect(history.reasons.groups.map(({ rows }) => rows).slice(0, 5)).toEqual([null, null, null, null, 5])
  expect(history.reasons.groups.at(-1)).toEqual({ name: unlessSecret('field29: wrong'), rows: 30 })
})

/** Rows of each query in each window of a month, in one file each, and the day of the month on which they were imported. */
type Table = { readonly rows: readonly (readonly number[])[]; readonly days: readonly (readonly number[])[] }

const some = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 6 }) },
  { weight: 2, arbitrary: fc.integer({ min: 7, max: 120 }) },
  { weight: 1, arbitrary: fc.integer({ min: 95, max: 1205 }) },
  { weight: 1, arbitrary: fc.constantFrom(10, 11, 99, 100, 101, 109, 110, 999, 1000, 1099, 12_000) },
)

/** @param spread over how many days of a month rows may come */
const tables = (spread: number): fc.Arbitrary<Table> =>
  fc
    .record({ queries: fc.integer({ min: 1, max: 4 }), months: fc.integer({ min: 1, max: 4 }) })
    .chain(({ queries, months }) =>
      fc.record({
        rows: fc.array(fc.array(some, { minLength: months, maxLength: months }), {
          minLength: queries,
          maxLength: queries,
        }),
        cuts: fc.array(fc.array(fc.nat({ max: 1500 }), { maxLength: spread - 1 }), {
          minLength: months,
          maxLength: months,
        }),
      }),
    )
    .map(({ rows, cuts }) => {
      const days = cuts.map((cuts, month) => {
        const total = sum(rows.map((row) => row[month]!))
        const cutPoints = [0, ...cuts.map((cut) => cut % (total + 1)), total].sort((a, b) => a - b)
        return cutPoints.slice(1).map((index, i) => index - cutPoints[i]!)
      })
      return { rows, days }
    })

const monthAt = (i: number): string => new Date(Date.UTC(2024, i, 1)).toISOString().slice(0, 10)

function knownOfTable({ rows, days }: Table): Known {
  const total = sum(rows.flat())
  const partitions = rows.flatMap((row, query) =>
    row.map((rows, month) => ({
      query: `domain.${query}.example`,
      window: `${monthAt(month)}..${monthAt(month + 1)}`,
      rows,
      state: 'done' as const,
    })),
  )
  const counts = days.flatMap((days, month) =>
    days.map((rows, i): [number, number] => [Date.UTC(2024, month, 1 + 5 * i) / 86_400_000, rows]),
  )
  return {
    ...knownOf({
      runs: [{ rows: total, quarantined: 0, repeated: 0 }],
      cells: [],
      counted: total,
      reasons: [],
    }),
    aggregates: {
      rows: total,
      days: { counts: counts.filter(([, rows]) => rows > 0), others: 0 },
      sources: { counts: [['a', total]], others: 0 },
      hash_types: { counts: [['b', total]], others: 0 },
      nulls: {},
    },
    partitions: () => partitions,
    *shards() {
      for (const { query, window, rows } of partitions) {
        if (rows > 0) yield { path: `credentials/${query}/${window}`, rows, bytes: 100, sha256: 'cd' }
      }
    },
  }
}

/** A tree of totals: the range of each, and its parts. */
type Node = { range: Range; readonly parts: readonly Node[] }

/** Narrows a tree down as far as possible: from its leaves to the root, and back. */
function narrow(root: Node): void {
  const up = (node: Node): void => {
    for (const part of node.parts) up(part)
    if (node.parts.length === 0) return
    const ranges = node.parts.map(({ range }) => range)
    node.range = {
      low: Math.max(node.range.low, sum(ranges.map(({ low }) => low))),
      high: Math.min(node.range.high, sum(ranges.map(({ high }) => high))),
    }
  }
  const down = (node: Node): void => {
    const found = solved(
      node.parts.map(({ range }) => range),
      node.range,
    )
    for (const [i, part] of node.parts.entries()) {
      part.range = found[i]!
      down(part)
    }
  }
  up(root)
  down(root)
}

/** The range of each file for a reader who combines heat map, timeline, files and total. */
function filesAsKnown(
  table: Table,
  { rows: result, shards }: SummaryPageData,
): readonly (readonly Range[])[] {
  const ofFile = new Map(shards.map(({ path, rows }) => [path, ofClass(rows)]))
  const cells = table.rows.map((row, query) =>
    row.map((_, month): Node => {
      const key = `domain.${query}.example/${monthAt(month)}..${monthAt(month + 1)}`
      const line = result.heat!.rows.find((line) => line.query === `domain.${query}.example`)!
      const file: Node = { range: ofFile.get(`credentials/${key}`) ?? exactly(0), parts: [] }
      return { range: between(line.cells[month] ?? null), parts: [file] }
    }),
  )
  const { unit, groups, others } = result.timeline
  const column = (month: number): Node => ({
    range: { low: 0, high: MANY },
    parts: cells.map((row) => row[month]!),
  })
  const months = table.rows[0]!.map((_, month) => ({ name: monthAt(month).slice(0, 7), node: column(month) }))
  const shown = new Map<string, number>()
  for (const { name, rows } of groups) shown.set(name.slice(0, 7), (shown.get(name.slice(0, 7)) ?? 0) + rows)
  // Days that are not shown may lie in any month; if there are none, months are known to the row.
  const isExact = unit === 'month' || others === 0
  for (const { name, node } of months) {
    const rows = shown.get(name)
    if (rows !== undefined) node.range = isExact ? exactly(rows) : { low: rows, high: MANY }
  }
  const open = unit === 'month' ? months.filter(({ name }) => !shown.has(name)) : months
  const isKnown = groups.length > 0 || others !== 0
  const rest: Node = {
    range: isKnown && unit === 'month' && others !== null ? exactly(others) : { low: 0, high: MANY },
    parts: open.map(({ node }) => node),
  }
  const root: Node = {
    range: result.rows === null ? { low: 1, high: result.rows_at_most ?? MANY } : exactly(result.rows),
    parts: [...months.filter((month) => !open.includes(month)).map(({ node }) => node), rest],
  }
  narrow(root)
  return cells.map((row) => row.map(({ parts }) => parts[0]!.range))
}

it.each([
  { what: 'months', spread: 1 },
  { what: 'days', spread: 5 },
])('nor does a table of queries and windows, files and a timeline of $what together', ({ spread }) => {
  let [withNumbers, alike] = [0, 0]
  fc.assert(
    fc.property(tables(spread), (table) => {
      const report = gatherSummaryPage(PIPELINE, knownOfTable(table), AROUND)
      if (report.rows.heat === null) return
      const known = filesAsKnown(table, report)
      for (const [query, row] of table.rows.entries()) {
        for (const [month, rows] of row.entries()) {
          const { low, high } = known[query]![month]!
          expect(low).toBeLessThanOrEqual(rows)
          expect(high).toBeGreaterThanOrEqual(rows)
          if (rows === 0 || rows >= LEAST) continue
          const text = `${rows} of query ${query} in month ${month} is known to be ${low} to ${high}`
          expect(high, text).toBeGreaterThanOrEqual(LEAST)
          expect(high - low, text).toBeGreaterThanOrEqual(LEAST - 1)
        }
      }
      const cells = report.rows.heat.rows.flatMap(({ cells }) => cells)
      if (cells.some((cell) => cell !== null && cell.least >= 10 && cell.most! < 1.2 * cell.least))
        withNumbers++
      else alike++
    }),
    { numRuns: cases(4000) },
  )
  // A report that shows nothing would pass as well.
  expect(withNumbers).toBeGreaterThan(alike / 4)
})

/** Whoever gets a report after each run knows the sum of the runs between any two of them. */
function expectSeriesReveals(reports: readonly SummaryPageData[], runs: readonly number[]): void {
  const totals = [exactly(0), ...reports.map(({ rows: result }) => totalOf(result))]
  const told = runs.map((_, i) => {
    const shown = reports.flatMap(({ runs: history }, k) => {
      const at = i - (k + 1 - history.runs.length)
      return i <= k && at >= 0 ? [rangeOf(history.runs[at]!.rows)] : []
    })
    return shown.reduce((all, range) => ({
      low: Math.max(all.low, range.low),
      high: Math.min(all.high, range.high),
    }))
  })
  for (let from = 0; from < totals.length; from++)
    for (let to = from + 1; to < totals.length; to++) {
      const sum = {
        low: Math.max(0, totals[to]!.low - totals[from]!.high),
        high: totals[to]!.high - totals[from]!.low,
      }
      expectHidden(told.slice(from, to), sum, runs.slice(from, to))
    }
}

function totalOf({ rows, rows_at_least, rows_at_most }: SummaryPageData['rows']): Range {
  return rows === null ? { low: rows_at_least ?? 1, high: rows_at_most ?? MANY } : exactly(rows)
}

/** The reports after each of some runs. */
function seriesOf(runs: readonly number[]): readonly SummaryPageData[] {
  const reports: SummaryPageData[] = []
  let reported: number | null = null
  for (let count = 1; count <= runs.length; count++) {
    const rows = sum(runs.slice(0, count))
    const world = {
      runs: runs.slice(0, count).map((rows) => ({ rows, quarantined: 0, repeated: 0 })),
      cells: [rows],
      counted: rows,
      reasons: [],
    }
    const report = gatherSummaryPage(PIPELINE, knownOf(world, reported), AROUND)
    reported = report.rows.rows ?? reported
    reports.push(report)
  }
  return reports
}

it('nor does a calculation with all reports of a series, one after each run', () => {
  fc.assert(
    fc.property(fc.array(few, { minLength: 1, maxLength: 12 }), (runs) => {
      expectSeriesReveals(seriesOf(runs), runs)
    }),
    { numRuns: cases(1000, 250) },
  )
})

it('a run that adds few rows leaves the total of the earlier report, and shows no division of the new one', () => {
  const reports = seriesOf([7, 3, 0, 40, 2])
  const [first, second, third, fourth, fifth] = reports.map(({ rows: result }) => result)
  expect(first).toMatchObject({ rows: 7, rows_at_least: null, new_rows: 7 })
  for (const few of [second, third]) {
    expect(few).toMatchObject({ rows: null, rows_at_least: 7, counted_rows: null, nulls: [] })
    expect(few!.heat?.rows.map(({ cells }) => cells)).toEqual([[{ least: 1, most: null, state: 'done' }]])
    expect(few!.sources.groups).toEqual([])
  }
  expect(second!.new_rows).toBe(null)
  expect(fourth).toMatchObject({ rows: 50, new_rows: null })
  expect(fifth).toMatchObject({ rows: null, rows_at_least: 50 })
  // What was removed is hidden likewise.
  const world = { runs: [{ rows: 50, quarantined: 0, repeated: 0 }], cells: [48], counted: 48, reasons: [] }
  expect(gatherSummaryPage(PIPELINE, knownOf(world, 50), AROUND).rows).toMatchObject({
    rows: null,
    rows_at_least: null,
    rows_at_most: 50,
  })
})

it('where no count is small every cell is exact, and totals are those of the headline', () => {
  const cells = [120_345, 98_761, 7]
  const world = {
    runs: [{ rows: sum(cells), quarantined: 0, repeated: 0 }],
    cells,
    counted: sum(cells),
    reasons: [],
  }
  const { rows: result } = gatherSummaryPage(PIPELINE, knownOf(world), AROUND)
  expect(result.heat?.rows[0]?.cells).toEqual(
    cells.map((rows) => ({ least: rows, most: rows, state: 'done' })),
  )
  const table = heatTable(result.heat!).text
  for (const number of ['120,345', '98,761', '219,113']) expect(table).toContain(`>${number}</td>`)
  // A few rows in one cell: its neighbours lose digits, and the total says "≥".
  const some = {
    ...world,
    cells: [120_345, 98_761, 3],
    runs: [{ rows: 219_109, quarantined: 0, repeated: 0 }],
    counted: 219_109,
  }
  const rounded = gatherSummaryPage(PIPELINE, knownOf(some), AROUND).rows.heat!
  expect(rounded.rows[0]!.cells[2]).toMatchObject({ least: 1, most: 9 })
  const [, total] = /class="sum">≥([\d,]+)<\/td>/.exec(heatTable(rounded).text) ?? []
  expect(Number(total?.replaceAll(',', ''))).toBeLessThanOrEqual(219_109)
})

it('late rows in a file of their own keep the digits of their partition back', () => {
  const world = {
    runs: [{ rows: 2150, quarantined: 0, repeated: 0 }],
    cells: [2150],
    counted: 2150,
    reasons: [],
  }
  const known: Known = {
    ...knownOf(world),
    *partitions() {
      yield { query: 'domain.acme.example', window: day(0), rows: 103, files: [100, 3], state: 'done' }
      yield { query: 'domain.acme.example', window: day(1), rows: 2047, state: 'done' }
    },
  }
  const { rows: result } = gatherSummaryPage(PIPELINE, known, AROUND)
  const [late, other] = result.heat!.rows[0]!.cells
  // A file of 100 to 999 rows and one of 1 to 9: more digits would tell how many the second has.
  expect(late).toMatchObject({ least: 101, most: 1008 })
  // Nor may the whole tell it, with the other windows.
  expect(other).toMatchObject({ least: 1000, most: 9999 })
})

it('the verdict names no number of items below 5', () => {
  const known = knownOf({
    runs: [{ rows: 100, quarantined: 1, repeated: 0 }],
    cells: [100],
    counted: 100,
    reasons: [1],
  })
  const leftOut = { ...known.leftOut, quarantined_partitions: 7, forgotten: 1 }
  expect(gatherSummaryPage(PIPELINE, { ...known, leftOut }, AROUND).verdict.left_out).toEqual([
    'some items were left out (quarantine, in 7 partitions, see _quarantine)',
    'some items of forgotten people were left out (forget)',
  ])
})

it('why items were quarantined is summed over the runs', () => {
  const known = knownOf({
    runs: [
      { rows: 100, quarantined: 40, repeated: 0 },
      { rows: 100, quarantined: 50, repeated: 0 },
    ],
    cells: [200],
    counted: 200,
    reasons: [],
  })
  const reasons = [{ 'hash: too long': 40 }, { 'hash: too long': 20, 'id: missing': 30 }]
  const runs = known.runs.map((run, i) => ({ ...run, reasons: reasons[i] as Record<string, number> }))
  expect(gatherSummaryPage(PIPELINE, { ...known, runs }, AROUND).runs.reasons.groups).toEqual([
    { name: 'hash: too long', rows: 60 },
    { name: 'id: missing', rows: 30 },
  ])
})
