import { existsSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { RunSummary } from '../../src/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { runInProcess } from '../support/library-run.ts'
import { readCsv, readParquet } from '../support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from '../support/rows.ts'
import { type Fault, repeatedSearches, type Sandbox, startSandbox } from '../support/sandbox.ts'
import { cases } from '../support/thorough.ts'
import { type PipelineParts, SMALL } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-17', until: '2024-06-05T12:00:00Z' }

const extract = fc.record({
  every: fc.constantFrom('month', 'week', '40d', 'year', undefined),
  order: fc.constantFrom('asc', 'desc'),
  per_chain: fc.constantFrom('all', 1, 2, 5),
  page_size: fc.integer({ min: 1, max: 40 }),
  concurrency: fc.integer({ min: 1, max: 6 }),
})
const load = fc.record({
  format: fc.constantFrom('parquet', 'csv'),
  partition_by: fc.constantFrom('none', 'query', 'window', ['query', 'window']),
  shard_rows: fc.constantFrom(1, 7, 50, 1_000_000),
})
const trouble = fc.constantFrom<Fault['kind'][]>(
  [],
  ['reset'],
  ['truncate', 'html'],
  ['invalid-json', 'wrong-content-length'],
  ['wrong-shape', 'reset-mid-body'],
)
const service = fc.record({
  seed: fc.nat(),
  records: fc.integer({ min: 0, max: 90 }),
  emptyPageRate: fc.constantFrom(0, 0.4),
  shortPageRate: fc.constantFrom(0, 0.5),
  lastNext: fc.constantFrom<('null' | 'missing')[]>('null', 'missing'),
  gzip: fc.boolean(),
  trouble,
})
const anyPipeline = fc.record({ extract, load, service })
type Drawn = typeof anyPipeline extends fc.Arbitrary<infer T> ? T : never

it('random pipelines give exactly the expected rows, although the service fails at times', async () => {
  await fc.assert(
    fc.asyncProperty(anyPipeline, async (drawn) => {
      await withPipeline(drawn, async ({ run, difference, sandbox }) => {
        const { status, requests, partitions } = await run(null)
        expect({ status, failed: partitions.failed }).toEqual({ status: 'complete', failed: 0 })
        expect(requests).toBe(sandbox.requests.length)
        expect(await difference()).toEqual(SAME)
        expect((await run(null)).requests).toBe(0)
      })
    }),
    { numRuns: cases(25, 1) },
  )
})

it('stopped after any number of requests, again and again, they give the same rows for the same requests, except those that keep slots busy', async () => {
  const stops = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(anyPipeline, stops, async (drawn, budgets) => {
      // Without trouble no request is sent twice, so their number is known.
      const calm = { ...drawn, service: { ...drawn.service, trouble: [] } }
      const least = await withPipeline(calm, async ({ run }) => (await run(null)).requests)
      const { concurrency } = drawn.extract
      await withPipeline(calm, async ({ run, difference, sandbox, output }) => {
        for (const budget of budgets) {
          const { status, requests } = await run(budget)
          if (concurrency === 1) expect(status).toBe(sandbox.requests.length < least ? 'budget' : 'complete')
          expect(requests).toBeLessThanOrEqual(budget)
          expect(existsSync(join(output, '_SUCCESS'))).toBe(status === 'complete')
        }
        expect((await run(null)).status).toBe('complete')
        expect(repeatedSearches(sandbox.requests)).toBe(0)
        // Of several slots, each may be given windows of a query of another one.
        if (concurrency === 1) expect(sandbox.requests).toHaveLength(least)
        expect(await difference()).toEqual(SAME)
      })
    }),
    { numRuns: cases(12, 1) },
  )
})

type Context = {
  readonly sandbox: Sandbox
  readonly output: string
  /** Runs with a budget of requests; null: without. */
  run(maxRequests: number | null): Promise<RunSummary>
  difference(): Promise<unknown>
}

async function withPipeline<T>(
  { extract, load, service }: Drawn,
  work: (context: Context) => Promise<T>,
): Promise<T> {
  const { trouble, ...data } = service
  const sandbox = await startSandbox({
    ...SMALL,
    ...data,
    faults: trouble.map((kind, i) => ({ kind, rate: 0.2, times: 6 + i }) as Fault),
  })
  const folder = scratchFolder()
  const output = join(folder, 'out')
  const { every, per_chain, ...rest } = extract
  return await work({
    sandbox,
    output,
    async run(maxRequests) {
      const parts: PipelineParts = {
        service: { retries: 20, requests_per_second: 10_000 },
        extract: {
          domains: DOMAINS,
          windows: { ...RANGE, every, per_chain },
          ...rest,
          max_requests: maxRequests ?? 'none',
        },
        load,
      }
      return runInProcess({ folder, baseUrl: sandbox.baseUrl, token: sandbox.token }, parts)
    },
    async difference() {
      const found = load.format === 'csv' ? await readCsv(output) : await readParquet(output)
      return difference(found, expectedOfDomains(sandbox, DOMAINS, RANGE))
    },
  })
}
