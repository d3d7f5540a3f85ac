import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextAtEnd } from '../../src/extract/extract-pages.ts'
import { extractPages } from '../../src/extract/index.ts'
import { eventually } from '../support/eventually.ts'
import { cases } from '../support/thorough.ts'
import { collect, decode, domainChain, failure, open, sendPage, serve } from './support.ts'

const mayPrefetch = (): boolean => true

describe('where a chain may prefetch', () => {
  it('the next page is requested while the one before it is being decoded, and no other', async () => {
    const server = await serve((_request, response, index) =>
      sendPage(response, index < 3 ? `c${index}` : null),
    )
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const pages = extractPages(open(server.url), domainChain({ mayPrefetch }), async (body, context) => {
      if (context.page === 0) await gate
      return decode(body, context)
    })
    const first = pages.next()
    await eventually(() => expect(server.received).toHaveLength(2))
    await sleep(50)
    expect(server.received.map(({ json }) => json.from)).toEqual([undefined, 'c0'])
    release()
    expect((await first).value?.page.next).toBe('c0')
    // The consumer still has the first page: no more is requested.
    await sleep(50)
    expect(server.received).toHaveLength(2)
    expect((await pages.next()).value?.page.next).toBe('c1')
    await eventually(() => expect(server.received).toHaveLength(3))
    await pages.return()
  })

  it('the pages, their requests and the cursors are the same as without', async () => {
    const nextOf = (index: number) => (index < 20 ? `c${index}` : null)
    const apart = await serve((_request, response, index) => sendPage(response, nextOf(index)))
    const server = await serve((_request, response, index) => sendPage(response, nextOf(index)))
    const without = await collect(open(apart.url), domainChain())
    const untimed = (pages: readonly object[]) => pages.map((page) => ({ ...page, ms: 0 }))
    expect(untimed(await collect(open(server.url), domainChain({ mayPrefetch })))).toEqual(untimed(without))
    expect(server.received.map(({ json }) => json.from)).toEqual(apart.received.map(({ json }) => json.from))
  })

  it('a cursor in a response that breaks later is replaced by that of the next attempt', async () => {
    const server = await serve((request, response, index) => {
      if (index === 0) response.end('{"items":[1,],"next":"wrong"}')
      else sendPage(response, request.json.from === 'right' ? null : 'right')
    })
    const service = open(server.url)
    const pages = await collect(service, domainChain({ mayPrefetch }))
    expect(pages.map(({ page }) => page.next)).toEqual(['right', null])
    expect(server.received.map(({ json }) => json.from)).toEqual([undefined, 'wrong', undefined, 'right'])
    // Every request is counted.
    expect(pages.reduce((sum, { requests }) => sum + requests, 0)).toBe(4)
    expect(service.counters.requests).toBe(4)
  })

  it('a page that is no longer wanted is aborted, and not retried', async () => {
    let closed = false
    const server = await serve((_request, response, index) => {
      if (index === 0) return sendPage(response, 'a')
      response.on('close', () => {
        closed = true
      })
    })
    const service = open(server.url)
    const fault = new TypeError('a defect')
    const pages = collect(service, domainChain({ mayPrefetch }), async () => {
      await eventually(() => expect(server.received).toHaveLength(2))
      throw fault
    })
    await expect(pages).rejects.toBe(fault)
    await eventually(() => expect(closed).toBe(true))
    await sleep(30)
    expect(server.received).toHaveLength(2)
  })

  it.each([
    ['a repeated cursor is not requested', 3, (index: number) => ['a', 'b', 'a'][index] ?? null],
    ['a hundred empty pages cost a hundred requests', 100, (index: number) => `c${index}`],
  ])('%s', async (_name, requests, nextOf) => {
    const server = await serve((_request, response, index) => sendPage(response, nextOf(index), []))
    const error = await failure(collect(open(server.url), domainChain({ mayPrefetch })))
    expect(error.kind).toBe('data')
    expect(server.received).toHaveLength(requests)
  })

  it('a budget that is used up ends the chain after the pages it paid for', async () => {
    const server = await serve((_request, response, index) => sendPage(response, `c${index}`))
    const service = open(server.url, { limits: { maxRequests: 3, minSearchesRemaining: null } })
    const pages: (string | null)[] = []
    const error = await failure(
      (async () => {
        for await (const { page } of extractPages(service, domainChain({ mayPrefetch }), decode)) {
          pages.push(page.next)
        }
      })(),
    )
    expect(error.kind).toBe('quota')
    expect(pages).toEqual(['c0', 'c1', 'c2'])
    expect(server.received).toHaveLength(3)
  })
})

describe('the cursor at the end of a response', () => {
  const bytes = (text: string) => Buffer.from(text)

  it('is found at its last occurrence, whatever the white space', () => {
    expect(nextAtEnd(bytes('{"items":[],"next":"WyJhIl0="}'))).toBe('WyJhIl0=')
    expect(nextAtEnd(bytes('{ "items": [],\n  "next" : "a b"\n}\n'))).toBe('a b')
    for (const other of [
      '{"items":[],"next":null}',
      '{"next":"a","items":[]}',
      '{"items":[],"next":"a\\u0041"}',
      '{"items":[],"next":"é"}',
      '{"items":[],"next":""}',
      '',
    ]) {
      expect(nextAtEnd(bytes(other))).toBeNull()
    }
  })

  it('is that of the parsed response, whatever the response contains', () => {
    const strings = fc.oneof(fc.string(), fc.constantFrom('"next":"x"}', '{"next":"x"}', 'next', '\\', '"'))
    const values = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        strings,
        fc.integer(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('next', 'a', 'b'), tie('value'), { maxKeys: 3 }),
      ),
    })).value
    const responses = fc.tuple(
      fc.dictionary(fc.constantFrom('items', 'next', 'z'), values),
      fc.constantFrom(0, 1, 2),
    )
    fc.assert(
      fc.property(responses, ([response, spaces]) => {
        const found = nextAtEnd(bytes(JSON.stringify(response, null, spaces)))
        if (found !== null) expect(found).toBe((response as { next?: unknown }).next)
      }),
      { numRuns: cases(5000, 300) },
    )
  })
})
