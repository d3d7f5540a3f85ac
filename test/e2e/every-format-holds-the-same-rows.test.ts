import { join } from 'node:path'
import zlib from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
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
const parquet = [
  ...['compact', 'plain'].flatMap((encodings) =>
    ['none', 'snappy', 'gzip', ...(hasZstd ? ['zstd'] : [])].map((compression) => ({
      engine: 'columnar',
      encodings,
      compression,
    })),
  ),
  ...['none', 'snappy', 'gzip'].map((compression) => ({
    engine: 'parquetjs-lite',
    encodings: 'plain',
    compression,
  })),
]
const csv = ['columnar', 'csv-stringify'].flatMap((engine) =>
  ['none', 'gzip'].map((compression) => ({ engine, compression })),
)

async function exported(load: PipelineParts['load'] & object): Promise<string> {
  const here = await workspaceFor(sandbox, { extract: EXTRACT, load: { shard_rows: 100, ...load } })
  await exits(0, here.run())
  const { shards, totals } = await here.manifest()
  expect(shards.map(({ path }) => path)).toEqual(await shardPaths(here.output))
  expect(totals.rows).toBe(300)
  const { code: verified, stdout } = await here.call('verify', '--json')
  expect(verified, stdout).toBe(0)
  return here.output
}

function expected(milliseconds = false): Row[] {
  return expectedOfDomains(sandbox, DOMAINS, { include: INCLUDE, milliseconds })
}

// Compression does not know encodings: by default each engine and encoding comes once.
const pairs = new Set(['compact none', 'plain snappy', 'parquetjs-lite gzip'])
const usual = parquet.filter(({ engine, encodings, compression }) =>
  pairs.has(`${engine === 'columnar' ? encodings : engine} ${compression}`),
)

describe.each(THOROUGH ? parquet : usual)(
  'parquet by $engine, $encodings, $compression',
  ({ engine, encodings, compression }) => {
    it('gives DuckDB every row, to the microsecond where the engine can', async () => {
      const output = await exported({ format: 'parquet', engine, compression, parquet: { encodings } })
      const milliseconds = engine === 'parquetjs-lite'
      expectSame(await readParquet(output), expected(milliseconds))
      // Enough rows have microseconds, so that the comparison would notice their loss.
      expect(
        expected().filter(({ imported_at }) => !String(imported_at).endsWith('000')).length,
      ).toBeGreaterThan(100)
      const columnChunks = await sql(
        `select compression, encodings from parquet_metadata('${join(output, (await shardPaths(output))[0]!)}')
       where total_compressed_size > 0`,
      )
      expect(new Set(columnChunks.map(({ compression }) => compression))).toEqual(
        new Set([compression === 'none' ? 'UNCOMPRESSED' : compression.toUpperCase()]),
      )
      expect(columnChunks.some(({ encodings }) => /DELTA|RLE_DICTIONARY/.test(String(encodings)))).toBe(
        encodings === 'compact',
      )
    })
  },
)

describe.each(THOROUGH ? csv : [csv[0]!, csv.at(-1)!])(
  'csv by $engine, $compression',
  ({ engine, compression }) => {
    it('gives csv-parse and DuckDB every row, and null differs from the empty string', async () => {
      const output = await exported({ format: 'csv', engine, compression })
      const ending = compression === 'gzip' ? '.csv.gz' : '.csv'
      for (const path of await shardPaths(output)) expect(path).toMatch(new RegExp(`part-\\d{5}\\${ending}$`))
      expectSame(await readCsv(output), expected())
      expectSame(await readCsvByDuckdb(output), expected())
    })
  },
)

it('the rows hold null and the empty string', () => {
  const rows = expectedOfDomains(sandbox, DOMAINS, { masking: { secret: 'plaintext' } })
  expect(rows.some(({ hash }) => hash === '')).toBe(true)
  expect(rows.some(({ hash }) => hash === null)).toBe(true)
})
