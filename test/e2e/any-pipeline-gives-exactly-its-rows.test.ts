import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { runLibrary } from '../support/library-run.ts'
import { type Fault, repeatedSearches } from '../support/sandbox.ts'
import { cases } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-17', until: '2024-06-05T12:00:00Z' }

const extract = fc.record({
  every: fc.constantFrom('month', 'week', '40d', 'year', undefined),
  order: fc.constantFrom('asc', 'desc'),
  per_chain: fc.constantFrom('all', 1, 2, 5),
  page_size: fc.integer({ min: 1, max: 40 }),
  concurrency: fc.integer({ min: 1, max: 6 }),
})
const encoding = fc.constantFrom<Readonly<Record<string, string>>>(
  { format: 'parquet' },
  { format: 'csv' },
  { format: 'csv', compression: 'gzip' },
  { format: 'parquet', compression: 'none', engine: 'parquetjs-lite' },
)
const layout = fc.record({
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
const anyPipeline = fc.record({ extract, encoding, layout, service })
type Drawn = typeof anyPipeline extends fc.Arbitrary<infer T> ? T : never

/** Budgets of the first runs. */
const stops = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 5 })

it('random pipelines give exactly the expected rows, although the service fails at times', async () => {
  await fc.assert(
    fc.asyncProperty(anyPipeline, async (drawn) => {
      const { here, run, expectWhole } = await newExport(drawn)
      let last = await run(null)
      expect(last.requests).toBe(here.searches().length)
      // A response of another shape is requested once more only.
      const isOfShape = drawn.service.trouble.includes('wrong-shape')
      for (let again = 0; isOfShape && last.status === 'failed' && again < 6; again++) last = await run(null)
      const { status, partitions } = last
      expect({ status, failed: partitions.failed }).toEqual({ status: 'complete', failed: 0 })
      await expectWhole()
      expect((await run(null)).requests).toBe(0)
    }),
    { numRuns: cases(25, 1) },
  )
})

it('stopped after any number of requests, again and again, they give the same rows for the same requests, except those that keep slots busy', async () => {
  await fc.assert(
    fc.asyncProperty(anyPipeline, stops, async (drawn, budgets) => {
      // Without trouble no request is sent twice, so their number is known.
      const calm = { ...drawn, service: { ...drawn.service, trouble: [] } }
      const least = (await (await newExport(calm)).run(null)).requests
      const { concurrency } = drawn.extract
      const { here, run, expectWhole } = await newExport(calm)
      for (const budget of budgets) {
        const { status, requests } = await run(budget)
        if (concurrency === 1) expect(status).toBe(here.searches().length < least ? 'budget' : 'complete')
        expect(requests).toBeLessThanOrEqual(budget)
        expect(existsSync(join(here.output, '_SUCCESS'))).toBe(status === 'complete')
      }
      expect((await run(null)).status).toBe('complete')
      expect(repeatedSearches(here.sandbox.requests)).toBe(0)
      // Of several slots, each may be given windows of a query of another one.
      if (concurrency === 1) expect(here.searches()).toHaveLength(least)
      await expectWhole()
    }),
    { numRuns: cases(12, 1) },
  )
})

async function newExport({ extract, encoding, layout, service }: Drawn) {
  const { trouble, ...data } = service
  const faults = trouble.map((kind, i) => ({ kind, rate: 0.2, times: 6 + i }) as Fault)
  const here = await newWorkspace({}, { ...data, faults })
  const { every, per_chain, ...rest } = extract
  // A run with a failed partition seals the shards that it shares with others, so that their rows can be read.
  let hasShortShards = false
  return {
    here,
    /** Runs with a budget of requests; null: without. */
    async run(maxRequests: number | null) {
      const windows = { ...RANGE, every, per_chain }
      const summary = await runLibrary(here, {
        service: { retries: 20, requests_per_second: 10_000 },
        extract: { domains: DOMAINS, windows, ...rest, max_requests: maxRequests ?? 'none' },
        load: { ...encoding, ...layout },
      })
      hasShortShards ||= summary.status === 'failed' && !Array.isArray(layout.partition_by)
      return summary
    },
    /**
     * Every row is there once, in shards of exactly `shard_rows`: only the last of a folder may have fewer, and after a
     * failure those that partitions share. Every request is on record.
     */
    async expectWhole() {
      await here.expectRows(DOMAINS, { ...RANGE, milliseconds: 'engine' in encoding })
      const { shards, runs } = await here.manifest()
      const recorded = runs.reduce((sum, { requests }) => sum + requests, 0)
      expect(recorded).toBe(here.searches().length)
      for (const [i, next] of hasShortShards ? [] : shards.slice(1).entries())
        if (dirname(shards[i]!.path) === dirname(next.path)) expect(shards[i]!.rows).toBe(layout.shard_rows)
    },
  }
}
