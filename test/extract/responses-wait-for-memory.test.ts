import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { BufferPool } from '../../src/core/index.ts'
import { eventually } from '../support/eventually.ts'
import { collect, domainChain, emptyPage, open, serve } from './support.ts'

const MB = 1 << 20
const OWN_LIMIT = 32 * MB

it('responses beyond 32 MB are received one at a time, and none fails because of it', async () => {
  const server = await serve((_request, response) => {
    // Without a length, the size is not known before the end.
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
      if (bytes > OWN_LIMIT) most = Math.max(most, ++large)
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
  await Promise.all([1, 2].map(() => collect(service, domainChain(), decode)))
  expect(sizes).toEqual([40 * MB + 2, 40 * MB + 2])
  expect(most).toBe(1)
})

it('a waiting response is received after the one before it turns out to be too large', async () => {
  // The first reserves the memory for large responses and has no end; the second, of 40 MB, waits for it.
  const chunk = Buffer.alloc(MB, 0x20)
  let sent = 0
  let proceed = (): void => {}
  const first = new Promise<void>((resolve) => {
    proceed = resolve
  })
  const server = await serve(async (_request, response) => {
    response.on('error', () => {})
    const isFirst = sent++ === 0
    if (!isFirst) await first
    for (let mb = 1; mb <= (isFirst ? 1000 : 40) && !response.destroyed; mb++) {
      if (isFirst && mb === 34) {
        proceed()
        // The other one is written as far as it is read, and a little beyond.
        await eventually(() => expect(written).toBeGreaterThan(32))
      }
      const isTaken = response.write(chunk)
      if (!isFirst) written = mb
      if (!isTaken) await Promise.race([once(response, 'drain'), once(response, 'close')])
    }
    response.end('{}')
  })
  let written = 0
  const service = open(server.url, { settings: { maxResponseBytes: 64 * MB, retries: 0 } })
  const decode = async () => emptyPage({})
  const ended = await Promise.allSettled([1, 2].map(() => collect(service, domainChain(), decode)))
  expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  const failed = ended.find(({ status }) => status === 'rejected') as PromiseRejectedResult
  expect(String(failed.reason)).toContain('The response is larger than')
})
