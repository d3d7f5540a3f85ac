import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type BufferPool, bufferPool } from '../../src/core/index.ts'
import { extractPages } from '../../src/extract/index.ts'
import type { DecodedPage, DecodePage } from '../../src/rows/index.ts'
import { eventually } from '../support/eventually.ts'
import { collect, decode, domainChain, emptyPage, fakeClock, open, sendPage, serve } from './support.ts'

/** A pool that counts its allocations. */
function countingPool(): BufferPool & { readonly allocated: number } {
  const pool = bufferPool(2)
  const known = new WeakSet<ArrayBufferLike>()
  let allocated = 0
  return {
    take(bytes) {
      const buffer = pool.take(bytes)
      if (!known.has(buffer)) allocated++
      known.add(buffer)
      return buffer
    },
    give(buffer) {
      pool.give(buffer)
    },
    get allocated() {
      return allocated
    },
  }
}

const PAGES = 30

/** Releases the response's memory once it is decoded, as a run does. */
function givingBack(buffers: BufferPool): DecodePage {
  return async (body, context) => {
    try {
      return await decode(body, context)
    } finally {
      buffers.give(body.buffer)
    }
  }
}

describe('the memory of responses', () => {
  it.each<[string, (index: number, body: Buffer) => { body: Buffer; headers: Record<string, string> }]>([
    ['announced', (_, body) => ({ body, headers: { 'content-length': String(body.length) } })],
    ['unannounced', (_, body) => ({ body, headers: {} })],
    ['compressed', (_, body) => ({ body: gzipSync(body), headers: { 'content-encoding': 'gzip' } })],
    [
      'compressed in parts',
      (_, body) => ({
        body: Buffer.concat([gzipSync(body.subarray(0, 90_000)), gzipSync(body.subarray(90_000))]),
        headers: { 'content-encoding': 'gzip' },
      }),
    ],
  ])('is reused: %s', async (_, send) => {
    const server = await serve((_request, response, index) => {
      const next = index + 1 < PAGES ? `c${index}` : null
      const { body, headers } = send(index, page(next))
      response.writeHead(200, headers).end(body)
    })
    const buffers = countingPool()
    const pages = await collect(open(server.url, { buffers }), domainChain(), givingBack(buffers))
    expect(pages).toHaveLength(PAGES)
    // The first response grows; from then on the memory is large enough.
    expect(buffers.allocated).toBeLessThanOrEqual(6)
  })

  it.each<[string, (response: Parameters<Parameters<typeof serve>[0]>[1]) => void]>([
    [
      'breaks off',
      (response) => {
        response.writeHead(200, { 'content-length': 200_000 })
        response.write(Buffer.alloc(150_000, ' '), () => response.destroy())
      },
    ],
    [
      'is compressed and broken',
      (response) => {
        const body = gzipSync(page(null)).subarray(0, -20)
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(body)
      },
    ],
    ['is an error', (response) => response.writeHead(500).end(Buffer.alloc(60_000, 'x'))],
  ])('is reused when every second response %s', async (_, fail) => {
    let searches = 0
    const server = await serve((_request, response) => {
      const search = searches++
      if (search % 2 === 0) return fail(response)
      const next = search < 2 * PAGES - 1 ? `c${search}` : null
      response.writeHead(200, { 'content-length': page(next).length }).end(page(next))
    })
    const buffers = countingPool()
    const service = open(server.url, { buffers, clock: fakeClock() })
    expect(await collect(service, domainChain(), givingBack(buffers))).toHaveLength(PAGES)
    expect(buffers.allocated).toBeLessThanOrEqual(6)
  })

  it('has room for the largest response so far at once, where the length is not announced', async () => {
    const sizes: number[] = []
    const buffers: BufferPool = {
      take(bytes) {
        sizes.push(bytes)
        return new ArrayBuffer(bytes)
      },
      give() {},
    }
    const server = await serve((_request, response, index) => {
      response.writeHead(200)
      response.write(page(index < 2 ? `c${index}` : null).subarray(0, 1))
      response.end(page(index < 2 ? `c${index}` : null).subarray(1))
    })
    const service = open(server.url, { buffers, settings: { maxResponseBytes: 500_000 } })
    const received: number[] = []
    const noting: DecodePage = async (body, context) => {
      received.push(body.byteLength)
      return decode(body, context)
    }
    expect(await collect(service, domainChain(), noting)).toHaveLength(3)
    const [largest] = received.toSorted((a, b) => b - a)
    // The first grows once; never beyond the limit.
    expect(sizes).toEqual([65_536, 500_000, received[0], largest])
  })

  it('is released with a prefetched page that is not consumed', async () => {
    const server = await serve((_request, response, index) => sendPage(response, `c${index}`))
    const pages: DecodedPage[] = []
    const released: DecodedPage[] = []
    const read: DecodePage = async (body, context) => {
      const { next } = await decode(body, context)
      const decoded = emptyPage({ next, items: 1 })
      pages.push(decoded)
      return decoded
    }
    const chain = extractPages(open(server.url), domainChain({ mayPrefetch: () => true }), read, (dropped) =>
      released.push(dropped),
    )
    const first = await chain.next()
    await eventually(() => expect(pages).toHaveLength(2))
    await chain.return()
    expect(first.value?.page).toBe(pages[0])
    await eventually(() => expect(released).toEqual([pages[1]]))
  })
})

function page(next: string | null): Buffer {
  return Buffer.from(JSON.stringify({ items: [1], padding: ' '.repeat(100_000), next }))
}
