import { describe, expect, it } from 'vitest'
import type { Format } from '../../src/core/index.ts'
import { createEncoder } from '../../src/load/encode/create-encoder.ts'
import { refusal } from '../disk/errors.ts'
import { type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import { createdBy, parquetFormats, plainCsv, snappyParquet } from './shard-fixture.ts'

const SECRET = 'Tr0ub4dor-and-3'
const columns = specs({ id: 'int64', hash: 'text', tags: 'list?' })

const encoderOf = (format: Format) => createEncoder({ format, columns, createdBy, fileMetadata: {} })

describe.each(parquetFormats)('parquet by $engine, $encodings, $compression', (format) => {
  it('refuses a null in a required column, without values in the message, and encodes as before after it', async () => {
    const encoder = await encoderOf(format)
    const encoded = async (...rows: readonly Row[]) => {
      const { bytes, ...rest } = await encoder.encode([recordBatchOf(columns, rows)])
      return { bytes: Buffer.from(bytes), ...rest }
    }
    const good = { id: 1, hash: SECRET, tags: [SECRET] }
    const before = await encoded(good)
    const error = await refusal(encoded(good, { ...good, hash: null }))
    expect(error.kind).toBe('data')
    expect(error.cause).toBeUndefined()
    expect(`${error.message} ${error.stack}`).not.toContain(SECRET)
    expect(await encoded(good)).toEqual(before)
  })
})

it.each([snappyParquet, plainCsv])('refuses rows that lack a column ($kind)', async (format) => {
  const fewer = recordBatchOf(columns.slice(0, 2), [{ id: 1, hash: SECRET }])
  const error = await refusal((await encoderOf(format)).encode([fewer]))
  expect(error).toMatchObject({ kind: 'damaged', what: 'Rows have no list column tags' })
})
