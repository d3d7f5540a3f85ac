import { type Row, recordBatchOf, specs } from './record-batch-builder.ts'

/** Rows of every type, in pages of 10,000: many pages, dictionaries of many sizes, long runs, and long strings. */
export const columns = specs({
  id: 'int64',
  far: 'int64?',
  at: 'timestamp',
  leaked: 'timestamp?',
  flag: 'boolean?',
  email: 'text',
  note: 'text?',
  kind: 'text?',
  unique: 'text?',
  body: 'text?',
  tags: 'list?',
  links: 'list?',
})
export const rows = Array.from({ length: 25_001 }, (_, i): Row => {
  const random = scramble(i)
  return {
    id: 33_880_703_907 + i * 3 + (random % 3),
    // Too far apart for deltas that are exact as doubles.
    far: i % 7 === 0 ? null : (i % 2 === 0 ? 1 : -1) * (Number.MAX_SAFE_INTEGER - random),
    at: 1_700_000_000_000_000 + i * 1_000_003 + (random % 5_000_000),
    leaked: random % 5 === 0 ? null : 1_500_000_000_000_000 + (random % 100) * 86_400_000_000,
    flag: random % 3 === 0 ? null : random % 2 === 0,
    email: `person${random}@${'x'.repeat(60)}.scatterholt.com`,
    note: random % 4 === 0 ? null : `note ${random % 9_000}`,
    kind: i < 12_000 ? 'unknown' : ['md5', null, 'sha1', ''][random % 4]!,
    unique: i % 10 === 0 ? null : `source ${i} ${'of many '.repeat(8)}`,
    // Three values are longer than a page.
    body: i % 20_000 === 5 ? 'long '.repeat(300_000) : i % 3 === 0 ? 'short' : null,
    tags:
      i % 4 === 0
        ? null
        : Array.from({ length: random % 4 }, (_, j) => (j === 2 ? null : `tag ${random % 50}`)),
    links:
      i % 3 === 0
        ? null
        : Array.from({ length: i % 4 }, (_, j) =>
            j === 1 ? null : `https://${i}.${j}.example/${'x'.repeat(70)}`,
          ),
  }
})
const groups = [['leaked', 'kind'], ['unique']]
export const recordBatches = [0, 1, 2].map((i) =>
  recordBatchOf(columns, rows.slice(i * 10_000, (i + 1) * 10_000), groups),
)

export function scramble(i: number): number {
  return Math.imul(i ^ (i >>> 7), 0x9e3779b1) >>> 0
}
