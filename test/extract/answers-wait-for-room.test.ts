import { expect, it } from 'vitest'
import type { BufferPool } from '../../src/core/index.ts'
import { collect, domainChain, emptyPage, open, serve } from './support.ts'

const MB = 1 << 20
const OWN = 32 * MB

it('answers beyond 32 MB are received one at a time, and none fails for it', async () => {
  const server = await serve((_request, response) => {
    // Without a length nobody can know what is coming.
    const chunk = Buffer.alloc(MB, 0x20)
    let left = 40
    const more = (): void => {
      while (left > 0) {
        left--
        if (!response.write(chunk)) return void response.once('drain', more)
      }
      response.end('{}')
    }
    more()
  })
  let large = 0
  let most = 0
  const buffers: BufferPool = {
    take(bytes) {
      if (bytes > OWN) most = Math.max(most, ++large)
      return new ArrayBuffer(bytes)
    },
    give() {},
  }
  const service = open(server.url, {
    buffers,

    settings: { maxResponseBytes: 64 * MB, retries: 0 },
  })
  const sizes: number[] = []
  const decode = async (body: Uint8Array) => {
    sizes.push(body.byteLength)
    await new Promise((resolve) => setImmediate(resolve))
    large--
    return emptyPage({})
  }
  await Promise.all([1, 2, 3, 4].map(() => collect(service, domainChain(), decode)))
  expect(sizes).toEqual(Array.from({ length: 4 }, () => 40 * MB + 2))
  expect(most).toBe(1)
})
