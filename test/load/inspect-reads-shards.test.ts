import { runInThisContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportError, type Format, isExportError } from '../../src/core/index.ts'
import { inspectShard, type ShardReader } from '../../src/load/inspect/index.ts'
import { decompressors } from '../../src/load/inspect/parquet-reader.ts'
import { typeName } from '../../src/rows/index.ts'
import { cases } from '../support/thorough.ts'
import { type CellValue, type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import {
  anyRowGroups,
  csvFormats,
  encodePages,
  encodeShard,
  everyColumn,
  parquetFormats,
  plainCsv,
  readerOf,
  rowsIn,
  snappyParquet,
} from './shard-fixture.ts'

it.each([...parquetFormats, ...csvFormats])(
  'rows, columns and watched strings: $kind by $engine',
  async (format) => {
    const columns = everyColumn.map(({ name, type, nullable }) => {
      return { name, type: typeName(type, format), nullable }
    })
    await fc.assert(
      fc.asyncProperty(anyRowGroups, fc.integer({ min: 1, max: 300 }), fc.boolean(), async (...given) => {
        const [rowGroups, piece, escapeFormulas] = given
        const written = format.kind === 'csv' ? { ...format, escapeFormulas } : format
        const bytes = await encodePages(written, rowGroups)
        const rows = rowsIn(rowGroups)
        const seen: Record<string, (string | null)[]> = { name: [], note: [] }
        const found = await inspectShard(readerOf(bytes, piece), written, {
          columns: everyColumn,
          watch: ['name', 'note', 'no_such_column'],
          onText: (column, value) => seen[column]!.push(value),
        })
        expect(found).toEqual({ rows: rows.length, columns })
        // CSV cannot have a NUL.
        const textOf = (value: CellValue | undefined): CellValue | undefined =>
          format.kind === 'csv' && typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value
        expect(seen).toEqual({
          name: rows.map(({ name }) => textOf(name)),
          note: rows.map(({ note }) => textOf(note)),
        })
      }),
      { numRuns: cases(30, 5) },
    )
  },
)

it.each([
  [snappyParquet, true, false],
  // Of CSV only the names are in the file.
  [plainCsv, false, true],
] as const)('reads the columns of the file, not those of the request (%#)', async (format, id, extra) => {
  const held = specs({ id: 'int64?', extra: 'text' })
  const bytes = await encodeShard(format, held, [[recordBatchOf(held, [{ id: 1, extra: 'x' }])]])
  const options = { columns: specs({ id: 'int64', hash: 'text?' }), watch: [], onText: () => {} }
  expect((await inspectShard(readerOf(bytes), format, options)).columns).toEqual([
    { name: 'id', type: 'INT64', nullable: id },
    { name: 'extra', type: 'STRING', nullable: extra },
  ])
})

const SECRET = 'Tr0ub4dor-and-3'
const columns = specs({
  id: 'int64',
  at: 'timestamp',
  flag: 'boolean?',
  name: 'text',
  hash: 'text?',
  tags: 'list?',
})
const rows = Array.from({ length: 60 }, (_, i): Row => {
  const [flag, name, hash] = [i % 2 === 0, `person ${i}`, `${SECRET}${i % 7}`]
  return { id: i, at: i * 1_000_000, flag, name, hash, tags: [SECRET] }
})
const rowGroups = [[recordBatchOf(columns, rows.slice(0, 40))], [recordBatchOf(columns, rows.slice(40))]]

function inspect(bytes: Uint8Array, format: Format, reader: Partial<ShardReader> = {}) {
  const options = { columns, watch: ['hash'], onText: () => {} }
  return inspectShard({ ...readerOf(bytes), ...reader }, format, options)
}

/** The error of an inspection, after a check that its message has no values. */
async function failure(bytes: Uint8Array, format: Format): Promise<ExportError | null> {
  try {
    await inspect(bytes, format)
    return null
  } catch (error) {
    if (!isExportError(error)) throw error
    expect(error.cause).toBeUndefined()
    expect(`${error.message} ${error.stack}`).not.toContain(SECRET)
    return error
  }
}

describe.each(parquetFormats)('parquet by $engine, $encodings, $compression', (format) => {
  it('is refused when it ends early', async () => {
    const whole = await encodeShard(format, columns, rowGroups)
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), async (length) => {
        expect((await failure(whole.subarray(0, length), format))?.kind).toBe('damaged')
      }),
      { numRuns: cases(60, 8) },
    )
  })

  it('never fails with an error of another class', async () => {
    const whole = await encodeShard(format, columns, rowGroups)
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, bits) => {
        const bytes = Buffer.from(whole)
        bytes[at] = bytes[at]! ^ bits
        await failure(bytes, format)
      }),
      { numRuns: cases(50, 12) },
    )
  })
})

it.each([
  ['beyond all that is there', [0xff, 0xff, 0xff, 0x7f]],
  ['that would be negative', [0xff, 0xff, 0xff, 0xff]],
  ['that is cut off', [1, 0]],
])('a Snappy page with a length %s is refused at once', (_, length) => {
  const page = Uint8Array.of(2, 0xfc, ...length)
  const holder = globalThis as { readPage?: () => unknown }
  holder.readPage = () => decompressors.SNAPPY!(page, 2)
  // A loop without end fails the test in place of hanging it.
  expect(() => runInThisContext('readPage()', { timeout: 60_000 })).toThrow(/^(?!.*timed out)/)
  delete holder.readPage
})

it.each(csvFormats)('csv by $engine, $compression that ends within a line is refused', async (format) => {
  const whole = await encodeShard(format, columns, rowGroups)
  const gzip = format.compression === 'gzip'
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: whole.length - 1 }), async (length) => {
      const lineEnds = !gzip && whole[length - 1] === 0x0a
      const memberEnds = gzip && whole[length] === 0x1f && whole[length + 1] === 0x8b
      fc.pre(!lineEnds && !memberEnds)
      expect((await failure(whole.subarray(0, length), format))?.kind).toBe('damaged')
    }),
    { numRuns: cases(120, 10) },
  )
})

const HEADER = 'id,at,flag,name,hash,tags\n'
const LINE = '1,2024-07-22T19:25:52.893439Z,true,x,y,[]'

it.each([
  ['a field too many', `${HEADER}${LINE},z\n`],
  ['a quote inside a field', `${HEADER}${LINE.replace('x', 'x"y"')}\n`],
  ['a bare carriage return', `${HEADER}${LINE}\r\n`],
  ['a quote that does not close', `${HEADER}${LINE.replace('x', '"x')}\n`],
  ['no line feed at the end', `${HEADER}${LINE}`],
  ['a null in a required column', `${HEADER}${LINE.replace('x', '')}\n`],
  ['no number', `${HEADER}${LINE.replace('1,', 'one,')}\n`],
  ['no timestamp', `${HEADER}${LINE.replace('2024-07-22T', '22.7.2024 ')}\n`],
  ['no list', `${HEADER}${LINE.replace('[]', 'none')}\n`],
  ['invalid UTF-8', Buffer.from(`${HEADER}${LINE.replace('x', '\xff')}\n`, 'latin1')],
])('csv is refused with %s', async (_, text) => {
  expect(await inspect(Buffer.from(`${HEADER}${LINE}\n`), plainCsv)).toMatchObject({ rows: 1 })
  expect((await failure(Buffer.from(text as string), plainCsv))?.kind).toBe('damaged')
})

it.each([snappyParquet, plainCsv])('lets errors of the storage pass ($kind)', async (format) => {
  const gone = new ExportError({ kind: 'storage', what: 'The disk is gone', where: 'shard', next: '' })
  const reader: Partial<ShardReader> = {
    slice: () => Promise.reject(gone),
    // biome-ignore lint/correctness/useYield: it fails before there is anything to give
    async *stream() {
      throw gone
    },
  }
  await expect(inspect(await encodeShard(format, columns, rowGroups), format, reader)).rejects.toBe(gone)
})
