import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { runInProcess } from '../support/library-run.ts'
import { readCsv, readParquet, shardPaths } from '../support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from '../support/rows.ts'
import { startSandbox } from '../support/sandbox.ts'
import { cases } from '../support/thorough.ts'
import { SMALL } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const RANGE = { from: '2024-01-17', until: '2024-06-05T12:00:00Z' }

/** Ways to request the same rows, and interruptions. */
const variant = fc.record({
  page_size: fc.integer({ min: 2, max: 60 }),
  concurrency: fc.integer({ min: 1, max: 5 }),
  per_chain: fc.constantFrom('all', 1, 2, 7),
  emptyPageRate: fc.constantFrom(0, 0.3),
  shortPageRate: fc.constantFrom(0, 0.5),
  /** Requests after which a run ends. The next one resumes. */
  budgets: fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }),
})
type Variant = typeof variant extends fc.Arbitrary<infer T> ? T : never

const given = fc.record({
  seed: fc.nat(),
  records: fc.integer({ min: 0, max: 70 }),
  order: fc.constantFrom('asc', 'desc'),
  every: fc.constantFrom('month', 'week', '9d', undefined),
  shard_rows: fc.constantFrom(9, 40, 1_000_000),
  load: fc.constantFrom(
    { format: 'parquet' },
    { format: 'parquet', compression: 'none', engine: 'parquetjs-lite' },
    { format: 'csv', compression: 'gzip' },
  ),
})
type Given = typeof given extends fc.Arbitrary<infer T> ? T : never

it('shards of one query and window hold the same rows in the same bytes, however they are requested', async () => {
  await fc.assert(
    fc.asyncProperty(given, variant, variant, async (given, one, other) => {
      expect(await exported(given, other)).toEqual(await exported(given, one))
    }),
    { numRuns: cases(8, 1) },
  )
})

/** SHA-256 of every shard by its path. */
async function exported(
  { seed, records, order, every, shard_rows, load }: Given,
  { budgets, emptyPageRate, shortPageRate, per_chain, ...extract }: Variant,
): Promise<ReadonlyMap<string, string>> {
  const sandbox = await startSandbox({ ...SMALL, seed: String(seed), records, emptyPageRate, shortPageRate })
  const folder = scratchFolder()
  const output = join(folder, 'out')
  for (const budget of [...budgets, 'none']) {
    const windows = { ...RANGE, every, per_chain }
    await runInProcess(
      { folder, baseUrl: sandbox.baseUrl, token: sandbox.token },
      {
        service: { requests_per_second: 10_000 },
        extract: { domains: DOMAINS, windows, order, ...extract, max_requests: budget },
        load: { ...load, shard_rows, partition_by: ['query', 'window'] },
      },
    )
  }
  // The engine for comparison knows milliseconds only.
  const milliseconds = 'engine' in load
  const found = load.format === 'csv' ? await readCsv(output) : await readParquet(output)
  const wanted = expectedOfDomains(sandbox, DOMAINS, { ...RANGE, milliseconds })
  expect(difference(found, wanted)).toEqual(SAME)
  const hashes = new Map<string, string>()
  for (const path of await shardPaths(output)) {
    hashes.set(
      path,
      createHash('sha256')
        .update(await readFile(join(output, path)))
        .digest('hex'),
    )
  }
  return hashes
}
