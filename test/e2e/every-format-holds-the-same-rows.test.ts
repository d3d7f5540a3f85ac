import { join } from 'node:path'
import zlib from 'node:zlib'
import { beforeAll, expect, it } from 'vitest'
import { readCsv, readCsvByDuckdb, readParquet, shardPaths, sql } from '../support/read-shards.ts'
import { expectedOfDomains, expectSame, type Row } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { type Sandbox, startSandbox } from '../support/sandbox.ts'
import { THOROUGH } from '../support/thorough.ts'
import { type PipelineParts, SMALL, workspaceFor } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const INCLUDE = ['known_password_id', 'auth_domains']
const EXTRACT = {
  domains: DOMAINS,
  include: INCLUDE,
  windows: { from: '2024-01-01', until: '2025-01-01', every: 'year' },
  page_size: 70,
}

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox(SMALL)
})

const hasZstd = Reflect.get(zlib, 'zstdCompressSync') !== undefined
const codecs = ['none', 'snappy', 'gzip']
const own = ['compact', 'plain'].flatMap((encodings) =>
  [...codecs, ...(hasZstd ? ['zstd'] : [])].map(
    (compression) => ['columnar', encodings, compression] as const,
  ),
)
const parquet = [...own, ...codecs.map((compression) => ['parquetjs-lite', 'plain', compression] as const)]
const csv = ['columnar', 'csv-stringify'].flatMap((engine) =>
  ['none', 'gzip'].map((compression) => ({ engine, compression })),
)

async function exported(load: PipelineParts['load'] & object): Promise<string> {
  const here = await workspaceFor(sandbox, { extract: EXTRACT, load: { shard_rows: 100, ...load } })
  await exits(0, here.run())
  const { shards, totals } = await here.manifest()
  expect(shards.map(({ path }) => path)).toEqual(await shardPaths(here.output))
  expect(totals.rows).toBe(300)
  await exits(0, here.call('verify', '--json'))
  return here.output
}

function expected(milliseconds = false): Row[] {
  return expectedOfDomains(sandbox, DOMAINS, { include: INCLUDE, milliseconds })
}

// Compression does not know encodings: by default each engine and encoding comes once.
const usual = parquet.filter((each) => /compact,none|r,plain,snappy|lite.*gzip/.test(each.join()))

it.each(THOROUGH ? parquet : usual)(
  'parquet by %s, %s, %s gives DuckDB every row, to the microsecond where the engine can',
  async (engine, encodings, compression) => {
    const output = await exported({ format: 'parquet', engine, compression, parquet: { encodings } })
    expectSame(await readParquet(output), expected(engine === 'parquetjs-lite'))
    // Enough rows have microseconds, so that the comparison would notice their loss.
    const precise = expected().filter(({ imported_at }) => !String(imported_at).endsWith('000'))
    expect(precise.length).toBeGreaterThan(100)
    const chunks = await sql(
      `select compression, encodings from parquet_metadata('${join(output, (await shardPaths(output))[0]!)}')
       where total_compressed_size > 0`,
    )
    const codec = compression === 'none' ? 'UNCOMPRESSED' : compression.toUpperCase()
    expect(new Set(chunks.map(({ compression }) => compression))).toEqual(new Set([codec]))
    const isCompact = chunks.some(({ encodings }) => /DELTA|RLE_DICTIONARY/.test(String(encodings)))
    expect(isCompact).toBe(encodings === 'compact')
  },
)

it.each(THOROUGH ? csv : [csv[0]!, csv.at(-1)!])(
  'csv by $engine, $compression gives csv-parse and DuckDB every row, and null differs from the empty string',
  async ({ engine, compression }) => {
    const output = await exported({ format: 'csv', engine, compression })
    const ending = compression === 'gzip' ? '.csv.gz' : '.csv'
    for (const path of await shardPaths(output)) expect(path).toMatch(new RegExp(`part-\\d{5}\\${ending}$`))
    expectSame(await readCsv(output), expected())
    expectSame(await readCsvByDuckdb(output), expected())
  },
)

it('the rows hold null and the empty string', () => {
  const rows = expectedOfDomains(sandbox, DOMAINS, { masking: { secret: 'plaintext' } })
  expect(rows.some(({ hash }) => hash === '')).toBe(true)
  expect(rows.some(({ hash }) => hash === null)).toBe(true)
})
