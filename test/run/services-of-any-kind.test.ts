import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cases } from '../support/thorough.ts'
import { type Habits, type MadeUpRow, madeUpService } from './made-up-service.ts'
import { exportsTo } from './world.ts'

const SECOND = 1_000_000
const WEEK_MS = 7 * 86_400_000

/** What becomes of a request that is not served. */
const TROUBLES = ['504', '503', 'html', 'reset', 'shape'] as const
type Trouble = (typeof TROUBLES)[number]

/** A run, and what has changed before it. */
const RUN = fc.record({
  pageSize: fc.integer({ min: 1, max: 40 }),
  budget: fc.integer({ min: 1, max: 12 }),
  most: fc.constantFrom(10, 17, 40),
  isKeyNew: fc.boolean(),
  troubles: fc.array(fc.tuple(fc.nat(12), fc.constantFrom(...TROUBLES)), { maxLength: 4 }),
})

const SERVICE = fc.record({
  by: fc.constantFrom('time' as const, 'id' as const),
  order: fc.constantFrom('asc', 'desc'),
  bindsSizes: fc.boolean(),
  /** How many windows of a week a chain has; null: the query has none. */
  perChain: fc.constantFrom(null, 'all', 1, 3),
  partitionBy: fc.constantFrom('[query, window]', '[window]', 'none'),
  concurrency: fc.constantFrom(1, 3),
  // Ties, late rows, dense and sparse hours, two months.
  times: fc.oneof(
    fc.array(fc.nat(20), { minLength: 1, maxLength: 90 }),
    fc.array(fc.nat(50_000), { minLength: 1, maxLength: 90 }),
    fc.array(fc.nat(5_000_000), { minLength: 1, maxLength: 90 }),
  ),
  /** How late, in seconds, rows may come by id. */
  late: fc.constantFrom(0, 60, 3000, 5_000_000),
  runs: fc.array(RUN, { minLength: 1, maxLength: 4 }),
})

function rowsOf(times: readonly number[], late: number): readonly MadeUpRow[] {
  const sorted = [...times].sort((a, b) => a - b)
  return sorted.map((second, id) => {
    const behind = (id * 7919) % (late + 1)
    return { id: id + 1, at: Math.max(0, second - behind) * SECOND + id, nanos: (id * 37) % 1000 }
  })
}

function troubled(troubles: readonly (readonly [number, Trouble])[], from: number): Habits['fault'] {
  const by = new Map(troubles.map(([after, trouble]) => [from + after, trouble]))
  return (_request, response, index) => {
    const trouble = by.get(index)
    if (trouble === undefined) return false
    if (trouble === 'reset') response.destroy()
    else if (trouble === 'html') response.writeHead(200).end('<html>')
    else if (trouble === 'shape') response.writeHead(200).end('{"items":3}')
    else response.writeHead(Number(trouble)).end('upstream')
    return true
  }
}

test('no row is lost, and none comes twice, from a service of any kind', { timeout: 600_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(
      SERVICE,
      async ({ by, order, bindsSizes, perChain, partitionBy, concurrency, times, late, runs }) => {
        const rows = rowsOf(times, by === 'time' ? 0 : late)
        const server = await madeUpService({ rows, by, bindsSizes })
        const folders = perChain === null ? 'none' : partitionBy
        const here = exportsTo(`path: out, format: csv, partition_by: ${folders}, shard_rows: 7`)
        const windows =
          perChain === null
            ? ''
            : `windows: { from: 2024-01-01, until: 2024-03-01, every: week, per_chain: ${perChain} }, `
        const run = (more: string) =>
          here.run(
            server.url,
            'token',
            `domains: [a.example], ${windows}order: ${order}, concurrency: ${concurrency}, ${more}`,
            'retries: 2',
          )
        for (const [i, { pageSize, budget, most, isKeyNew, troubles }] of runs.entries()) {
          Object.assign(server.habits, { most, fault: troubled(troubles, server.received.length) })
          if (isKeyNew) server.habits.cursorKey = `key ${i}`
          await run(`page_size: ${pageSize}, max_requests: ${budget}`)
        }
        server.habits.fault = () => false
        let last = await run('page_size: 40')
        // A chain without a place to go on from is exported anew by the run after.
        if (last.status !== 'complete') last = await run('page_size: 40')
        expect(last).toMatchObject({ status: 'complete', error: null })
        expect(here.ids()).toEqual(rows.map(({ id }) => id))
        const at = new Map(rows.map((row) => [row.id, Date.parse('2024-01-01') + row.at / 1000]))
        for (const [folder, ids] of Object.entries(here.idsByFolder())) {
          const from = Date.parse(/import_window=(\d{4}-\d\d-\d\d)/.exec(folder)?.[1] ?? '')
          if (!Number.isNaN(from))
            for (const id of ids) expect(Math.floor((at.get(id)! - from) / WEEK_MS), folder).toBe(0)
        }
      },
    ),
    { numRuns: cases(400, 15) },
  )
})
