import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Format, Int64 } from '../../src/core/index.ts'
import { createEncoder } from '../../src/load/encode/create-encoder.ts'
import { shardExtension } from '../../src/load/encode/encoder.ts'
import { type Commit, PageRows, type ShardSet, type Slice } from '../../src/load/index.ts'
import { encodeRecordBatch, type RecordBatch } from '../../src/rows/index.ts'
import { beginCheckpoint, findCheckpoint, Journal, type SealedShard } from '../../src/state/index.ts'
import { newOwner, temporaryStore } from '../disk/temporary-store.ts'
import { HEADER } from '../state/lines.ts'
import { random } from '../support/random.ts'
import { shardPaths } from '../support/read-shards.ts'
import { cases, some } from '../support/thorough.ts'
import { type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import { createdBy, encodeShard, plainCsv, snappyParquet } from './shard-fixture.ts'
import { expectSeal, openShards, pageLine, slicesOfPage, slowEncoder } from './shards-world.ts'

const columns = specs({
  id: 'int64',
  imported_at: 'timestamp',
  domain: 'text?',
  identity_name: 'text',
  flag: 'boolean?',
  urls: 'list?',
  source_id: 'text',
  source_name: 'text?',
  source_breached_at: 'timestamp?',
  query_type: 'text',
  query_value: 'text',
})
const SOURCE = ['source_id', 'source_name', 'source_breached_at']
const QUERY = ['query_type', 'query_value']
const FOLDERS = ['credentials/import_window=a', 'credentials/import_window=b'] as const
const QUERY_NAME = 'domain.acme.com'

/** A row and its window. */
type OwnRow = { readonly row: Row; readonly window: string }

const sources: readonly Row[] = [
  { source_id: 's0', source_name: 'A leak', source_breached_at: 1_600_000_000_000_000 },
  { source_id: 's1', source_name: null, source_breached_at: null },
  { source_id: 's2', source_name: '', source_breached_at: -62_135_596_800_000_000n },
  { source_id: 's0', source_name: 'A leak, told anew', source_breached_at: 1_600_000_000_000_000 },
]
const large = fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n - 1n })
const anyRow: fc.Arbitrary<OwnRow> = fc
  .record({
    id: fc.oneof({ weight: 9, arbitrary: fc.nat() as fc.Arbitrary<Int64> }, { weight: 1, arbitrary: large }),
    imported_at: fc.integer({ min: 1_700_000_000_000_000, max: 1_700_000_000_001_000 }),
    domain: fc.option(fc.oneof(fc.constantFrom('a.com', 'b.com', 'ü.org'), fc.string({ maxLength: 20 }))),
    identity_name: fc.string({ unit: 'grapheme', maxLength: 8 }),
    flag: fc.option(fc.boolean()),
    urls: fc.option(fc.array(fc.option(fc.string({ maxLength: 6 })), { maxLength: 3 })),
    source: fc.constantFrom(...sources),
    window: fc.constantFrom('w0', 'w1', 'w2'),
  })
  .map(({ source, window, ...row }) => {
    return { row: { ...row, ...source, query_type: 'domain', query_value: 'acme.com' }, window }
  })

const page = fc.record({
  rows: fc.integer({ min: 1, max: 40 }),
  /** Whether domains are a table of distinct values. */
  table: fc.boolean(),
  /** Whether integers are 64-bit though doubles would be exact. */
  wide: fc.boolean(),
  /** Whether the next page is passed before this one is committed. */
  hurry: fc.boolean(),
  /** Whether the run stops after it, and another one resumes. */
  stop: fc.boolean(),
})
/** How rows of both folders, and rows that are left out, are mixed in pages; and what happens to each page. */
const framing = fc.record({
  /** The source of the next row of the responses: a folder's number, or 2 for one that is left out. */
  from: fc.array(fc.nat({ max: 2 }), { minLength: 20, maxLength: 60 }),
  /** At most so many turns of the event loop pass before a row group is encoded. */
  slow: fc.constantFrom(0, 3, 60),
  pages: fc.array(page, { minLength: 3, maxLength: 12 }),
})
type Framing = typeof framing extends fc.Arbitrary<infer T> ? T : never
const stranger: OwnRow = {
  row: { ...anyRowOf('stranger.com'), ...sources[2], id: 2n ** 62n, source_id: 'stranger' },
  window: 'other',
}

it.each<[string, Format]>([
  ['Parquet', snappyParquet],
  ['CSV', plainCsv],
  ['gzipped CSV', { ...plainCsv, compression: 'gzip' }],
])('%s shards have the same bytes however pages, commits and runs divide their rows', async (_, format) => {
  const sizes = fc.record({
    rowGroupRows: fc.integer({ min: 1, max: 25 }),
    shardRows: fc.integer({ min: 1, max: 70 }),
  })
  const given = fc.tuple(fc.array(anyRow, { maxLength: 120 }), fc.array(anyRow, { maxLength: 60 }))
  await fc.assert(
    fc.asyncProperty(given, sizes, framing, framing, async (rows, sizes, ...framings) => {
      const expected = await shardsOf(format, rows, sizes)
      for (const framing of framings) {
        const { files, seals } = await exported(format, rows, sizes, framing)
        expect([...files.keys()]).toEqual([...expected.keys()].toSorted())
        for (const [path, { bytes, rows }] of expected) {
          expect(Buffer.compare(files.get(path) ?? Buffer.alloc(0), bytes), path).toBe(0)
          const seal = seals.find((each) => each.path === path)
          expectSeal(seal, bytes, rows.map(sealedRow))
        }
      }
    }),
    { numRuns: cases(30, 4) },
  )
})

describe('Parquet shards of many different domains', () => {
  /** Half of them are distinct, too many for a dictionary; the others repeat a few. */
  const rows = Array.from({ length: 30_000 }, (_, at): OwnRow => {
    const domain = at < 15_500 ? `host-${at}.example.com` : `host-${at % 50}.example.com`
    return { row: anyRowOf(domain), window: 'w0' }
  })
  // As the decoder gives it.
  const MAX_IN_A_TABLE = 1024

  it.each(some([500, 10_000], 1))('have the same bytes with pages of %i rows', async (size) => {
    const sizes = { rowGroupRows: 100_000, shardRows: 100_000 }
    const expected = await shardsOf(snappyParquet, [rows, []], sizes)
    const pages = slices(rows, size).map((page) => {
      const domains = new Set(page.map(({ row }) => row.domain))
      const table = domains.size <= MAX_IN_A_TABLE
      return { rows: size, table, wide: false, hurry: false, stop: false }
    })
    const { files } = await exported(snappyParquet, [rows, []], sizes, { from: [0], slow: 0, pages })
    expect(files.size).toBe(1)
    for (const [path, { bytes }] of expected)
      expect(Buffer.compare(files.get(path) ?? Buffer.alloc(0), bytes), path).toBe(0)
  })
})

function anyRowOf(domain: string): Row {
  const row = {
    id: 1,
    imported_at: 1_700_000_000_000_000,
    domain,
    identity_name: 'x',
    flag: null,
    urls: null,
  }
  return { ...row, ...sources[0], query_type: 'domain', query_value: 'acme.com' }
}

type Sizes = { readonly rowGroupRows: number; readonly shardRows: number }
type FolderRows = readonly [readonly OwnRow[], readonly OwnRow[]]

/** The expected shards: full except for the last, of row groups that are full except for the last. */
async function shardsOf(
  format: Format,
  rows: FolderRows,
  { rowGroupRows, shardRows }: Sizes,
): Promise<Map<string, { readonly bytes: Buffer; readonly rows: readonly OwnRow[] }>> {
  const shards = new Map<string, { bytes: Buffer; rows: readonly OwnRow[] }>()
  for (const [index, folder] of FOLDERS.entries()) {
    for (const [part, own] of slices(rows[index]!, shardRows).entries()) {
      const rowGroups = slices(own, rowGroupRows).map((rowGroup) => [
        recordBatchFor(rowGroup, [['domain'], SOURCE, QUERY]),
      ])
      const name = `part-${String(part).padStart(5, '0')}${shardExtension(format)}`
      shards.set(`${folder}/${name}`, { bytes: await encodeShard(format, columns, rowGroups), rows: own })
    }
  }
  return shards
}

function slices<T>(items: readonly T[], size: number): T[][] {
  const count = Math.ceil(items.length / size)
  return Array.from({ length: count }, (_, at) => items.slice(at * size, (at + 1) * size))
}

function recordBatchFor(own: readonly OwnRow[], groups: readonly (readonly string[])[]): RecordBatch {
  const rows = own.map(({ row }) => row)
  return recordBatchOf(columns, rows, groups)
}

/** Commits the rows in such pages, and seals the shards. */
async function exported(
  format: Format,
  rows: FolderRows,
  sizes: Sizes,
  { from, slow, pages }: Framing,
): Promise<{ readonly files: Map<string, Buffer>; readonly seals: readonly SealedShard[] }> {
  const { store: unowned, root } = temporaryStore()
  const store = await unowned.own(newOwner())
  await beginCheckpoint(store, HEADER)
  const draw = random(from.length)
  const made = await createEncoder({ format, columns, createdBy, fileMetadata: {} })
  const encoder = slowEncoder(made, () => Math.floor(draw() * slow))
  const open = async (): Promise<[Journal, ShardSet]> => {
    // From the files alone.
    const log = (await Journal.open(store, (await findCheckpoint(store))!))!
    const options = { store, encoder, extension: shardExtension(format), ...sizes, log }
    return [log, await openShards(options)]
  }
  const left = rows.map((own) => [...own])
  let drawn = 0
  const nextRow = (): { folder: number; own: OwnRow } => {
    let folder = from[drawn++ % from.length]!
    if (folder < 2 && left[folder]!.length === 0) folder = 1 - folder
    return { folder, own: folder === 2 ? stranger : left[folder]!.shift()! }
  }
  let [log, shards] = await open()
  await log.append([{ kind: 'chain', chain: 0, query: QUERY_NAME, order: 'asc', windows: null }])
  let commits: Promise<void>[] = []
  for (let number = 0; left.some((own) => own.length > 0); number++) {
    const page = pages[number % pages.length]!
    const response: { folder: number; own: OwnRow }[] = []
    while (response.length < page.rows && left.some((own) => own.length > 0)) response.push(nextRow())
    const entries: Commit['entries'] = (placement) => [{ ...pageLine(0, 'more'), ...placement }]
    commits.push(shards.commit({ slices: slicesOf(response, page), close: [], entries, blobs: [] }))
    if (page.hurry) continue
    await Promise.all(commits)
    commits = []
    if (!page.stop) continue
    await shards.close()
    await log.close()
    ;[log, shards] = await open()
  }
  await Promise.all(commits)
  await shards.seal(shards.openFolders)
  await shards.close()
  expect(log.state.openShards.size).toBe(0)
  expect(await store.list('_state/sealed')).toEqual([])
  const sealed = [...log.state.shards].reduce((sum, shard) => sum + shard.rows, 0)
  expect(sealed).toBe(rows.flat().length)
  const files = new Map((await shardPaths(root)).map((path) => [path, readFileSync(join(root, path))]))
  return { files, seals: [...log.state.shards] }
}

function slicesOf(
  response: readonly { readonly folder: number; readonly own: OwnRow }[],
  { table, wide }: Framing['pages'][number],
): Slice[] {
  const rows = response.map(({ own }) => own)
  const recordBatch = recordBatchFor(rows, [...(table ? [['domain']] : []), SOURCE, QUERY])
  const times = response.map(({ own }) => own.row.imported_at as number)
  const page = new PageRows(
    encodeRecordBatch(wide ? widened(recordBatch) : recordBatch),
    wide ? BigInt64Array.from(times, BigInt) : Float64Array.from(times),
  )
  return slicesOfPage(
    page,
    response,
    ({ folder }) => FOLDERS[folder] ?? null,
    ({ own }) => sealedRow(own).partition,
  )
}

function sealedRow({ row, window }: OwnRow) {
  return { time: row.imported_at as number, partition: `${QUERY_NAME}/${window}` }
}

/** With 64-bit integers, as in a page that dropped a row with a large one. */
function widened({ columns, ...recordBatch }: RecordBatch): RecordBatch {
  const wide = columns.map((column) => {
    const { values } = column
    if (values.kind !== 'number') return column
    const large = BigInt64Array.from(values.values, BigInt)
    return { ...column, values: { ...values, kind: 'int64' as const, values: large } }
  })
  return { ...recordBatch, columns: wide }
}
