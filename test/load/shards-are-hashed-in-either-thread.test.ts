import { createHash, type Hash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type ShardHash, shardHash, shardHashIn } from '../../src/load/index.ts'

/** A double of the hashing thread: it reads shared memory only when it handles the request. */
function hashing(): { hash: ShardHash; requests: () => number } {
  const state: Hash = createHash('sha256')
  let requests = 0
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(parts: readonly Uint8Array[], then: () => T): Promise<T> => {
    requests++
    const result = last.then(() => {
      for (const bytes of parts) state.update(bytes)
      return then()
    })
    last = result
    return result
  }
  const hash = shardHashIn({
    update: (parts) => inTurn(parts, () => null),
    digest: (parts) => inTurn(parts, () => state.digest('hex')),
  })
  return { hash, requests: () => requests }
}

const LENGTHS = fc.array(
  fc.oneof(fc.integer({ min: 0, max: 40_000 }), fc.integer({ min: 60_000, max: 70_000 })),
  {
    maxLength: 12,
  },
)

it('the digest is the same in another thread, whatever the lengths of the parts', async () => {
  await fc.assert(
    fc.asyncProperty(LENGTHS, async (lengths) => {
      const here = shardHash()
      const { hash } = hashing()
      for (const [i, length] of lengths.entries()) {
        const bytes = new Uint8Array(length).fill(i + 1)
        here.update(bytes)
        hash.update(bytes)
      }
      expect(await hash.digest()).toBe(await here.digest())
    }),
    { numRuns: 50 },
  )
})

it('a small shard is hashed without a request to another thread, and its memory is not kept', async () => {
  const { hash, requests } = hashing()
  const pooled = Buffer.from('first')
  hash.update(pooled)
  pooled.fill(0)
  hash.update(Buffer.from('second'))
  expect(await hash.digest()).toBe(createHash('sha256').update('firstsecond').digest('hex'))
  expect(requests()).toBe(0)
})

it('the digest fails when the thread has ended', async () => {
  const gone = () => Promise.reject(new Error('the thread is gone'))
  const hash = shardHashIn({ update: gone, digest: gone })
  hash.update(new Uint8Array(100_000))
  await expect(hash.digest()).rejects.toThrow('the thread is gone')
})
