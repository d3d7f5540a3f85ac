import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bufferPool } from '../../src/core/index.ts'
import type { EncodeSettings } from '../../src/load/index.ts'
import type { DecodedPage } from '../../src/rows/index.ts'
import { openCpu } from '../../src/run/cpu/cpu.ts'
import { createDecoder } from '../../src/transform/index.ts'
import { random } from '../support/random.ts'
import { credential, response } from '../transform/credentials.ts'
import { decodeSettings, pageContext, rowsOf } from '../transform/plans.ts'
import { randomPage, wildness } from '../transform/random-page.ts'

const PLAN = decodeSettings({ secret: 'plaintext' })
const ENCODE_PLAN: EncodeSettings = {
  format: { kind: 'csv', engine: 'columnar', compression: 'none', escapeFormulas: false },
  columns: PLAN.columns,
  createdBy: 'spillway',
  fileMetadata: {},
}

describe('the rows of a page', () => {
  it('are the same in the memory of the response and in memory of their own', async () => {
    const decode = createDecoder(PLAN)
    const { cpu, body } = await world()
    let inResponseMemory = 0
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        wildness(300),
        fc.constantFrom(0, 20_000),
        async (seed, wildness, extraRoom) => {
          const page = randomPage(random(seed), wildness)
          const expected = await outcome(async () => decode(page, pageContext()))
          const found = await outcome(async () => {
            const decoded = await cpu.decode(body(page, extraRoom), pageContext())
            if (decoded.recordBatch?.buffer instanceof SharedArrayBuffer) inResponseMemory++
            return decoded
          })
          expect(found).toEqual(expected)
        },
      ),
      { numRuns: 500 },
    )
    expect(inResponseMemory).toBeGreaterThan(50)
  })

  it('keep the memory of their response until they are released', async () => {
    const { pool, cpu, body } = await world()
    const bytes = body(response([credential()]), 20_000)
    const page = await cpu.decode(bytes, pageContext())
    expect(page.recordBatch?.buffer).toBe(bytes.buffer)
    const other = pool.take(100)
    expect(other).not.toBe(bytes.buffer)
    cpu.release(page)
    expect(pool.take(100)).toBe(bytes.buffer)
  })

  it.each([
    ['is too small for them', response([credential()]), 0],
    ['has none', response([]), 0],
    ['is wrong', Buffer.from('{"items": 1}'), 0],
  ])('free the memory of a response that %s at once', async (_, bytes, extraRoom) => {
    const { pool, cpu, body } = await world()
    const lent = body(bytes, extraRoom)
    const page = await cpu.decode(lent, pageContext()).catch(() => null)
    expect(pool.take(1)).toBe(lent.buffer)
    if (page !== null) cpu.release(page)
    expect(pool.take(1)).not.toBe(lent.buffer)
  })
})

async function world() {
  const pool = bufferPool(1)
  return {
    pool,
    cpu: await openCpu(PLAN, ENCODE_PLAN, pool),
    /** A response as it is received: at the beginning of a buffer of the pool. */
    body(bytes: Uint8Array, extraRoom: number): Uint8Array {
      const memory = new Uint8Array(pool.take(bytes.length + extraRoom), 0, bytes.length)
      memory.set(bytes)
      return memory
    },
  }
}

async function outcome(decode: () => Promise<DecodedPage>): Promise<unknown> {
  try {
    const page = await decode()
    return { ...page, recordBatch: rowsOf(page) }
  } catch (error) {
    return String(error)
  }
}
