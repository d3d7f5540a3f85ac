import { dirname } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatTimestamp, type Int64 } from '../../src/core/index.ts'
import { dataSetRows } from '../../src/warehouse/index.ts'
import { cases } from '../support/thorough.ts'
import { type CellValue, type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import {
  anyRowGroups,
  cells,
  cellsInDuckdb,
  csvFormats,
  encodePages,
  encodeShard,
  everyColumn,
  plainCsv,
  rowsIn,
  shardFolder,
  sql,
} from './shard-fixture.ts'

const write = shardFolder()

function texts(rows: readonly Row[]): (string | null)[][] {
  const text = (value: CellValue, i: number): string | null => {
    if (value === null) return null
    if (everyColumn[i]!.type === 'timestamp') return formatTimestamp(value as Int64)
    const clean = (one: string | null) => one?.replaceAll('\0', '\ufffd') ?? null
    return Array.isArray(value) ? JSON.stringify(value.map(clean)) : clean(String(value))
  }
  return cells(rows).map((row) => row.map(text))
}

function parsed(csv: Uint8Array): (string | null)[][] {
  return parse(Buffer.from(csv), {
    bom: false,
    from: 2,
    cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
  })
}

async function readByDuckdb(bytes: Uint8Array, extension: string): Promise<CellValue[][]> {
  const columns = everyColumn.map(({ name }) => `'${name}': 'VARCHAR'`).join()
  const table = `read_csv('${write(`shard${extension}`, bytes)}', header = true, auto_detect = false,
    columns = {${columns}}, delim = ',', quote = '"', escape = '"', new_line = '\\n', nullstr = '',
    allow_quoted_nulls = false)`
  return cellsInDuckdb(
    table,
    everyColumn.map((column) => ({ ...column, type: 'text' })),
  )
}

it.each(csvFormats)('csv by $engine, $compression is read back by DuckDB and csv-parse', async (format) => {
  await fc.assert(
    fc.asyncProperty(anyRowGroups, async (rowGroups) => {
      const bytes = await encodePages(format, rowGroups)
      const expected = texts(rowsIn(rowGroups))
      const gzip = format.compression === 'gzip'
      expect(parsed(gzip ? gunzipSync(bytes) : bytes)).toEqual(expected)
      expect(await readByDuckdb(bytes, gzip ? '.csv.gz' : '.csv')).toEqual(expected)
    }),
    { numRuns: cases(15, 6) },
  )
})

describe('csv', () => {
  it('has the same bytes from either engine', async () => {
    await fc.assert(
      fc.asyncProperty(anyRowGroups, fc.boolean(), async (rowGroups, escapeFormulas) => {
        const encode = (engine: 'columnar' | 'csv-stringify') =>
          encodePages({ ...plainCsv, engine, escapeFormulas }, rowGroups)
        const [fast, reference] = await Promise.all([encode('columnar'), encode('csv-stringify')])
        expect(fast.toString()).toBe(reference.toString())
      }),
    )
  })

  it('has the documented form', async () => {
    const columns = specs({ id: 'int64', note: 'text?', at: 'timestamp?', flag: 'boolean?', tags: 'list?' })
    const rows: Row[] = [
      { id: 33_880_703_907, note: 'plain', at: 1_721_676_352_893_439, flag: true, tags: ['a', 'b "c"'] },
      { id: -7, note: '', at: -1, flag: false, tags: [] },
      { id: 0, note: null, at: null, flag: null, tags: null },
      { id: 1, note: 'a "b", c\r\nd', at: 0, flag: null, tags: [null, ''] },
    ]
    const bytes = await encodeShard(plainCsv, columns, [[recordBatchOf(columns, rows)]])
    expect(bytes.toString()).toBe(
      [
        'id,note,at,flag,tags',
        '33880703907,plain,2024-07-22T19:25:52.893439Z,true,"[""a"",""b \\""c\\""""]"',
        '-7,"",1969-12-31T23:59:59.999999Z,false,[]',
        '0,,,,',
        '1,"a ""b"", c\r\nd",1970-01-01T00:00:00.000000Z,,"[null,""""]"',
        '',
      ].join('\n'),
    )
  })

  it('escapes formulas in strings, and nothing else; load and query read what there was, each another text', async () => {
    const columns = specs({ id: 'int64', note: 'text?' })
    const notes = ['=1', '+1', '-1', '@a', '\tx', '\rx', 'x=1', "''=1", "'x", '', null, '＝1', '=']
    const rows = notes.map((note): Row => ({ id: -1, note }))
    const format = { ...plainCsv, escapeFormulas: true }
    const guarded = ["'=1", "'+1", "'-1", "'@a", "'\tx", "'\rx", 'x=1', "'''=1", "'x", '', null, '＝1', "'="]
    for (const groups of [[], [['note']]]) {
      const bytes = await encodeShard(format, columns, [[recordBatchOf(columns, rows, groups)]])
      expect(parsed(bytes)).toEqual(guarded.map((note) => ['-1', note]))
      const root = dirname(write('shard.csv', bytes))
      const read = await sql(dataSetRows({ root, format, isMixed: false }, columns, ['shard.csv']))
      expect(read.map(([_, note]) => note)).toEqual(notes)
    }
  })

  it('has a header row even without rows, with quotes around names that need them', async () => {
    const columns = specs({ id: 'int64', 'a,"b"': 'text?' })
    for (const rowGroups of [[], [[]], [[recordBatchOf(columns, [])]]])
      expect((await encodeShard(plainCsv, columns, rowGroups)).toString()).toBe('id,"a,""b"""\n')
  })
})
