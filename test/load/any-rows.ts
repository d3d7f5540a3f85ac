import fc from 'fast-check'
import { int64 } from '../../src/core/index.ts'
import type { RecordBatch } from '../../src/rows/index.ts'
import { type CellValue, type Row, recordBatchOf, specs } from './record-batch-builder.ts'

/** A column of every type, null allowed and not. */
export const everyColumn = specs({
  id: 'int64',
  count: 'int64?',
  moment: 'timestamp',
  seen: 'timestamp?',
  sure: 'boolean',
  flag: 'boolean?',
  name: 'text',
  note: 'text?',
  labels: 'list',
  tags: 'list?',
})

// biome-ignore format: one line reads better
const nasty = fc.constantFrom(
  '', ' ', '"', '""', '\0', 'y"\0', ',', '\n', '\r', '\r\n', '\t', "'", '\\', '\\"', '=1+1', "'=1", "''=1", "'x", '-1', '@x', '+', 'null', '\ufeffx',
  '\ud7ff', '\ue000', '😀', 'é', '\u2028', '\u0001', '\u007f', '[]', '[REDACTED]', 'a,b\n"c"\r', 'x'.repeat(70),
)
const text = fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 12 }), fc.string({ maxLength: 40 }))
const integer = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -3, max: 300 }),
  fc.constantFrom(0, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 33_880_703_907),
)
/** From the year 1685 to 2255: microseconds that are exact as doubles. */
const micros = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -2, max: 2 }),
  fc.constantFrom(-1, 1_721_676_352_893_439, 951_782_399_999_999),
  // Midnights, and the last microseconds of days.
  fc.integer({ min: -104_000, max: 104_000 }).map((day) => day * 86_400_000_000 - (day & 1)),
)
const MAX = 2n ** 63n - 1n
const largeInteger = fc
  .oneof(
    fc.bigInt({ min: -MAX - 1n, max: MAX }),
    fc.bigInt({ min: 2n ** 62n, max: 2n ** 62n + 1000n }),
    fc.constantFrom(MAX, -MAX - 1n, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n) - 1n),
  )
  .map(int64)
/** 0001-01-01 to the last microsecond of the year 9999. */
const FIRST = -62_135_596_800_000_000n
const LAST = 253_402_300_799_999_999n
const farMicros = fc
  .oneof(
    fc.bigInt({ min: FIRST, max: LAST }),
    fc.constantFrom(FIRST, FIRST + 1n, LAST, 253_402_214_400_000_000n),
  )
  .map(int64)
const nullable = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(values, { freq: 3 })
const list = fc.array(nullable(text), { maxLength: 4 })

type Cells = fc.Arbitrary<CellValue>

const rowOf = (id: Cells, count: Cells, moment: Cells, seen: Cells): fc.Arbitrary<Row> =>
  fc.record({
    id,
    count: nullable(count),
    moment,
    seen: nullable(seen),
    sure: fc.boolean(),
    flag: nullable(fc.boolean()),
    name: text,
    note: nullable(text),
    labels: list,
    tags: nullable(list),
  })

/** Integers that are exact as doubles. */
export const ordinaryRow = rowOf(integer, integer, micros, micros)
/** With integers beyond doubles, in one column or in several. */
export const farRow = fc.oneof(
  rowOf(fc.oneof(integer, largeInteger), largeInteger, farMicros, fc.oneof(micros, farMicros)),
  rowOf(largeInteger, integer, micros, farMicros),
)

/** Columns that share a table, in several ways. */
export const groupings = fc.constantFrom<string[][]>(
  [],
  [['note', 'seen', 'flag', 'count']],
  [['name'], ['note', 'tags'], ['moment', 'sure']],
  [everyColumn.map(({ name }) => name)],
)

export type Page = { rows: readonly Row[]; recordBatch: RecordBatch }

/** The rows of a page, some of them repeated, and their record batch. */
export const anyPage: fc.Arbitrary<Page> = fc
  .tuple(
    fc.oneof(fc.array(ordinaryRow, { maxLength: 30 }), fc.array(farRow, { maxLength: 30 })),
    fc.integer({ min: 1, max: 5 }),
    groupings,
  )
  .map(([drawn, times, groups]) => {
    // Repeated rows give dictionaries and runs.
    const rows = drawn.flatMap((row) => Array.from({ length: times }, () => row))
    return { rows, recordBatch: recordBatchOf(everyColumn, rows, groups) }
  })
