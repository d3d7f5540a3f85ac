import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { runLibrary } from '../support/library-run.ts'
import { readParquet, shardPaths } from '../support/read-shards.ts'
import { cases } from '../support/thorough.ts'
import { credential, type Item, startService } from './hostile-service.ts'

const DAY_MS = 86_400_000
const FROM = Date.UTC(2024, 0, 1)
const WINDOW_DAYS = 3
const WINDOWS = 8
const RANGE = { from: '2024-01-01', until: new Date(FROM + WINDOWS * WINDOW_DAYS * DAY_MS).toISOString() }

const drawn = fc.record({
  /** Milliseconds into the range, in the order in which the service sends them. */
  times: fc.array(fc.integer({ min: 0, max: WINDOWS * WINDOW_DAYS * DAY_MS - 1 }), { maxLength: 60 }),
  /** How the service's order differs from the requested one. */
  disorder: fc.constantFrom('none', 'late', 'all'),
  order: fc.constantFrom<('asc' | 'desc')[]>('asc', 'desc'),
  pageSize: fc.integer({ min: 1, max: 20 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  per_chain: fc.constantFrom('all', 1, 3),
  partition_by: fc.constantFrom(['query', 'window'], ['window'], 'none'),
  budgets: fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 3 }),
})
type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never

function itemsOf({ times, disorder, order }: Drawn): readonly Item[] {
  const items = times.map((at, i) => credential(i + 1, { imported_at: new Date(FROM + at).toISOString() }))
  const sign = order === 'asc' ? 1 : -1
  const inOrder = [...items].sort((a, b) => sign * (timeOf(a) - timeOf(b)))
  switch (disorder) {
    case 'none':
      return inOrder
    case 'all':
      return items
    case 'late': {
      // One row of the beginning comes at the very end.
      const [first, ...others] = inOrder
      return first === undefined ? [] : [...others, first]
    }
  }
}

function timeOf(item: Item): number {
  return Date.parse(String(item.imported_at))
}

/** A service that applies the filter, but not the order. */
function serve(items: readonly Item[], pageSize: number) {
  return startService(({ body, json }) => {
    const { gte, lte } = body.filters.imported_at
    const own = items.filter((item) => timeOf(item) >= Date.parse(gte) && timeOf(item) <= Date.parse(lte))
    const start = Number(body.from?.split('/')[1] ?? 0)
    const next = start + pageSize < own.length ? `${gte}..${lte}/${start + pageSize}` : null
    json({ items: own.slice(start, start + pageSize), next })
  })
}

it('each row is in its window once, in whatever order the service sends them, also over several runs', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, async (given) => {
      const items = itemsOf(given)
      const service = await serve(items, given.pageSize)
      const folder = scratchFolder()
      const output = join(folder, 'out')
      const warnings: string[] = []
      for (const budget of [...given.budgets, 'none']) {
        const summary = await runLibrary(
          { folder, env: { SPILLWAY_BASE_URL: service.baseUrl, SPILLWAY_TOKEN: 'token-of-the-tests' } },
          {
            service: { requests_per_second: 10_000 },
            extract: {
              domains: ['acme.example'],
              windows: { ...RANGE, every: `${WINDOW_DAYS}d`, per_chain: given.per_chain },
              order: given.order,
              page_size: given.pageSize,
              concurrency: given.concurrency,
              max_requests: budget,
            },
            load: { partition_by: given.partition_by, shard_rows: 7 },
          },
        )
        warnings.push(...summary.warnings)
        expect(summary.partitions.failed).toBe(0)
      }
      const rows = await readParquet(output)
      expect(rows.map(({ id }) => Number(id)).sort((a, b) => a - b)).toEqual(items.map((_, i) => i + 1))
      if (given.partition_by !== 'none') await expectOwnFolders(output)
      if (given.disorder === 'none') expect(warnings).toEqual([])
    }),
    { numRuns: cases(15, 3) },
  )
})

/** Every row is in the folder of its window. */
async function expectOwnFolders(output: string): Promise<void> {
  const folders = new Set((await shardPaths(output)).map((path) => path.slice(0, path.lastIndexOf('/'))))
  for (const folder of folders) {
    const from = Date.parse(/import_window=(\d{4}-\d\d-\d\d)/.exec(folder)![1]!)
    for (const { imported_at } of await readParquet(join(output, folder))) {
      const at = Number(imported_at) / 1000
      expect(at, folder).toBeGreaterThanOrEqual(from)
      expect(at, folder).toBeLessThan(from + WINDOW_DAYS * DAY_MS)
    }
  }
}
