import { describe, expect, it } from 'vitest'
import type { ExportError, Format } from '../../src/core/index.ts'
import { createEncoder } from '../../src/load/encode/create-encoder.ts'
import type { RecordBatch } from '../../src/rows/index.ts'
import { refusal } from '../disk/errors.ts'
import { type Row, recordBatchOf, specs } from './record-batch-builder.ts'
import { createdBy, parquetFormats, plainCsv, snappyParquet } from './shard-fixture.ts'

const SECRET = 'Tr0ub4dor-and-3'
const columns = specs({ id: 'int64', hash: 'text', tags: 'list?' })

async function failure(format: Format, recordBatch: RecordBatch): Promise<ExportError> {
  const encoder = await createEncoder({ format, columns, createdBy, fileMetadata: {} })
  return refusal(encoder.encode([recordBatch]))
}

describe.each(parquetFormats)('parquet by $engine, $encodings, $compression', (format) => {
  it('refuses a null in a required column, without values in the message', async () => {
    const rows: Row[] = [
      { id: 1, hash: SECRET, tags: [SECRET] },
      { id: 2, hash: null, tags: [SECRET] },
    ]
    const error = await failure(format, recordBatchOf(columns, rows))
    expect(error.kind).toBe('data')
    expect(error.cause).toBeUndefined()
    expect(`${error.message} ${error.stack}`).not.toContain(SECRET)
  })

  it('encodes as before after a failure', async () => {
    const encoder = await createEncoder({ format, columns, createdBy, fileMetadata: {} })
    const good = recordBatchOf(columns, [{ id: 1, hash: 'x', tags: null }])
    const kept = async () => {
      const { bytes, ...rest } = await encoder.encode([good])
      return { bytes: Buffer.from(bytes), ...rest }
    }
    const before = await kept()
    await expect(
      encoder.encode([recordBatchOf(columns, [{ id: 1, hash: null, tags: null }])]),
    ).rejects.toThrow()
    expect(await kept()).toEqual(before)
  })
})

it.each([snappyParquet, plainCsv])('refuses rows that lack a column ($kind)', async (format) => {
  const error = await failure(
    format,
    recordBatchOf(specs({ id: 'int64', hash: 'text' }), [{ id: 1, hash: SECRET }]),
  )
  expect(error).toMatchObject({ kind: 'damaged', what: 'Rows have no list column tags' })
})
