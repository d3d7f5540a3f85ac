import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { dataSetRows } from '../../src/warehouse/index.ts'
import { type Row, recordBatchOf, specs } from '../load/record-batch-builder.ts'
import { encodeShard, plainCsv } from '../load/shard-fixture.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { sql } from '../support/read-shards.ts'

it('load and query read texts as they were before formulas were escaped, each another one', async () => {
  const texts = ['=eve', "'=eve", "''=eve", '+ada@ex.com', '-1', '@x', '\tx', '\rx', "'ada", '', null, 'x=1']
  const columns = specs({ note: 'text?' })
  const format = { ...plainCsv, escapeFormulas: true }
  const batch = recordBatchOf(
    columns,
    texts.map((note): Row => ({ note })),
  )
  const root = scratchFolder()
  await writeFile(join(root, 'a.csv'), await encodeShard(format, columns, [[batch]]))
  const rows = await sql(dataSetRows({ root, format, isMixed: false }, columns, ['a.csv']))
  expect(rows.map(({ note }) => note)).toEqual(texts)
})
