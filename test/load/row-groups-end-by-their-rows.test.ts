import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { RowChoice } from '../../src/load/index.ts'
import { chooseRows, takeRows } from '../../src/load/take-rows.ts'
import { rowGroups } from '../../src/load/write-shard.ts'
import type { Column, RecordBatch, TextVector } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import { tableOf } from './record-batch-builder.ts'

const MAX_BYTES = 64 << 20

/** A row by its strings: how many bytes are its own, and the source, with its bytes, that others have as well. */
type Row = {
  /** Bytes of its domain; -1: it has none. Rows whose domains are equally long have the same one. */
  readonly domain: number
  /** Bytes of each of its two URLs. */
  readonly urls: number
  readonly source: Source
}
type Source = { readonly id: number; readonly description: number }

const QUERY = Buffer.from('acme.com')

const sourceOf = (name: string, bytes: number): Source => ({ id: name.length, description: bytes })

const OTHER: Row = { domain: 5000, urls: 0, source: sourceOf('other', 500_000) }

/** The ends of the row groups of these rows, by the documented rule. */
function expectedEnds(rows: readonly Row[], maxRows: number): number[] {
  const ends: number[] = []
  let start = 0
  let bytes = 0
  for (const [index, { domain, urls, source }] of rows.entries()) {
    bytes += Math.max(0, domain) + 2 * urls + source.id + source.description + QUERY.length
    const count = index + 1 - start
    if (count < maxRows && (count % 1000 > 0 || bytes < MAX_BYTES)) continue
    ends.push(index + 1)
    start = index + 1
    bytes = 0
  }
  return start === rows.length ? ends : [...ends, rows.length]
}

const framing = fc.record({
  rows: fc.integer({ min: 1, max: 2500 }),
  /** Whether domains and sources are tables of distinct values. */
  table: fc.boolean(),
  /** Whether the page has other rows between these. */
  scattered: fc.boolean(),
  most: fc.integer({ min: 20, max: 3000 }),
})
type Framing = typeof framing extends fc.Arbitrary<infer T> ? T : never
const pages = fc.array(framing, { minLength: 1, maxLength: 6 })

/** The ends of the row groups if the rows come in such pages. */
async function endsOf(rows: readonly Row[], maxRows: number, pages: readonly Framing[]): Promise<number[]> {
  async function* batches(): AsyncGenerator<RecordBatch> {
    for (let done = 0, number = 0; done < rows.length; number++) {
      const page = pages[number % pages.length]!
      const own = rows.slice(done, done + page.rows)
      done += own.length
      const { recordBatch, choice } = framed(own, page)
      for (let at = 0; at < own.length; at += page.most)
        yield takeRows(recordBatch, chooseRows(choice, at, Math.min(own.length, at + page.most)))
    }
  }
  const ends: number[] = []
  let done = 0
  for await (const group of rowGroups(batches(), maxRows)) {
    done += group.reduce((sum, each) => sum + each.rows, 0)
    ends.push(done)
  }
  expect(done).toBe(rows.length)
  return ends
}

type Framed = { readonly recordBatch: RecordBatch; readonly choice: RowChoice }

function framed(own: readonly Row[], { table, scattered }: Framing): Framed {
  if (!scattered) return { recordBatch: recordBatchOf(own, table), choice: { from: 0, to: own.length } }
  const all: Row[] = []
  const choice = new Uint32Array(own.length)
  for (const [index, row] of own.entries()) {
    if (index % 100 === 0) all.push(OTHER)
    choice[index] = all.push(row) - 1
  }
  return { recordBatch: recordBatchOf(all, table), choice }
}

/** A page as the decoder makes it. The contents of strings do not matter here. */
function recordBatchOf(rows: readonly Row[], isTable: boolean): RecordBatch {
  const sources = tableOf(rows, ({ source }) => source)
  const domains = tableOf(rows, ({ domain }) => domain)
  const texts = (name: string, table: number, of: readonly Row[], lengthOf: (row: Row) => number): Column => {
    const valid = Uint8Array.from(of, (row) => (lengthOf(row) < 0 ? 0 : 1))
    const values = { ...blank(of.map((row) => Math.max(0, lengthOf(row)))), valid }
    return { name, group: isTable ? table : null, values }
  }
  const [ofDomains, ofSources] = isTable ? [domains.entries, sources.entries] : [rows, rows]
  const offsets = Uint32Array.from({ length: rows.length + 1 }, (_, row) => 2 * row)
  const urls = blank(rows.flatMap(({ urls }) => [urls, urls]))
  return {
    rows: rows.length,
    groups: [{ size: 1, indices: null }, ...(isTable ? [sources.group, domains.group] : [])],
    columns: [
      texts('domain', 2, ofDomains, ({ domain }) => domain),
      { name: 'urls', group: null, values: { kind: 'list', offsets, items: urls, valid: null } },
      texts('source_id', 1, ofSources, ({ source }) => source.id),
      texts('source_description_en', 1, ofSources, ({ source }) => source.description),
      { name: 'query_value', group: 0, values: blank([QUERY.length]) },
    ],
  }
}

/** Strings of these lengths, without their bytes. */
function blank(lengths: readonly number[]): TextVector {
  const offsets = new Uint32Array(lengths.length + 1)
  for (const [index, length] of lengths.entries()) offsets[index + 1] = offsets[index]! + length
  return { kind: 'text', offsets, bytes: new Uint8Array(0), valid: null }
}

it('a row group ends at the same row whatever the record batches of its rows', async () => {
  // Ranges of rows: short ones, with long strings of their own, and with long strings that they share.
  const range = fc.record({
    rows: fc.integer({ min: 1, max: 2500 }),
    domain: fc.constantFrom(-1, 0, 10, 9000),
    urls: fc.constantFrom(0, 40_000),
    sources: fc.constantFrom(1, 40, 300),
    sourceBytes: fc.constantFrom(0, 20, 200_000),
  })
  const made = fc.array(range, { minLength: 1, maxLength: 4 }).map((ranges) =>
    ranges.flatMap(({ rows, domain, urls, sources, sourceBytes }, number) => {
      const known = Array.from({ length: sources }, (_, one) =>
        sourceOf(`${number}-${one}`, one % 3 ? 5 : sourceBytes),
      )
      return Array.from({ length: rows }, (_, row): Row => {
        return { domain: domain + (row % 2), urls, source: known[row % sources]! }
      })
    }),
  )
  const maxRows = fc.constantFrom(700, 2000, 2500, 100_000)
  await fc.assert(
    fc.asyncProperty(made, maxRows, pages, pages, async (rows, maxRows, ...framings) => {
      const expected = expectedEnds(rows, maxRows)
      for (const framing of framings) expect(await endsOf(rows, maxRows, framing)).toEqual(expected)
    }),
    { numRuns: cases(30, 5) },
  )
})
