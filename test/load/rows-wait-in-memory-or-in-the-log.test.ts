import { expect, it } from 'vitest'
import { decodeRecordBatches } from '../../src/load/encode/decode-record-batches.ts'
import { LoggedBatch, RowCache } from '../../src/load/row-cache.ts'
import { encodeRecordBatch } from '../../src/rows/index.ts'
import type { BlobRef, CommitLog } from '../../src/state/index.ts'
import { anError } from '../disk/errors.ts'
import { cellsOf } from './cells.ts'
import { recordBatchOf, specs } from './record-batch-builder.ts'

/** A log that holds record batches of one byte: the offset of each. @param lost offsets that cannot be read */
function logWithout(...lost: readonly number[]) {
  const read: number[] = []
  const log: CommitLog = {
    commit: () => expect.unreachable(),
    async read({ offset }) {
      read.push(offset)
      return lost.includes(offset) ? null : Uint8Array.of(offset)
    },
  }
  return { log, read }
}

const at = (offset: number): Promise<BlobRef> => Promise.resolve({ file: 7, offset, bytes: 1, crc: 0 })

it('rows beyond the memory for them are read from the log, until there is room again', async () => {
  const { log, read } = logWithout()
  const cache = new RowCache(log, 2)
  const given = Uint8Array.of(0)
  const batches = [cache.add(given, at(0)), ...[1, 2, 3].map((n) => cache.add(Uint8Array.of(n), at(n)))]
  // The memory of a page is reused after its commit.
  given[0] = 9
  expect(await Promise.all(batches.map((batch) => batch.take()))).toEqual(
    [0, 1, 2, 3].map((n) => Uint8Array.of(n)),
  )
  expect(read).toEqual([2, 3])
  expect(await cache.add(Uint8Array.of(4), at(4)).take()).toEqual(Uint8Array.of(4))
  expect(read).toEqual([2, 3])
})

it('rows that were joined take less memory, and none of it once they are taken', async () => {
  const { log, read } = logWithout()
  const columns = specs({ id: 'int64', name: 'text' })
  const pages = [1, 2, 3].map((id) => recordBatchOf(columns, [{ id, name: 'x'.repeat(20_000) }], [['name']]))
  const encoded = pages.map((page) => encodeRecordBatch(page))
  const cache = new RowCache(log, 3 * encoded[0]!.byteLength)
  const kept = (byteLength: number) => cache.add(new Uint8Array(byteLength), at(9)).shortBytes > 0
  const batches = encoded.map((bytes, n) => cache.add(bytes, at(n)))
  expect(kept(20_000)).toBe(false)
  const [joined, ...others] = LoggedBatch.joined(batches)
  expect(others).toEqual([])
  // Two thirds are free again.
  expect(kept(30_000)).toBe(true)
  expect(kept(20_000)).toBe(false)
  const bytes = await joined!.take()
  expect(decodeRecordBatches([bytes]).flatMap(cellsOf)).toEqual(pages.flatMap(cellsOf))
  expect(kept(20_000)).toBe(true)
  expect(read).toEqual([])
})

it('rows that the log has lost during a run end it, and are never left out', async () => {
  const { log } = logWithout(2)
  const cache = new RowCache(log, 0)
  expect(await cache.add(Uint8Array.of(1), at(1)).take()).toEqual(Uint8Array.of(1))
  await expect(cache.add(Uint8Array.of(2), at(2)).take()).rejects.toEqual(anError('damaged', '_state/log'))
})
