import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { collect, decode, domainChain, failure, open, pagesOf, sendPage, serve } from './support.ts'

const mayPrefetch = (): boolean => true

/** A service whose first pages have a cursor: `c0`, `c1`, … */
function pages(count: number, items = [1]) {
  return serve((_request, response, index) =>
    sendPage(response, index + 1 < count ? `c${index}` : null, items),
  )
}

describe('where a chain may prefetch', () => {
  it('the next page is requested beside the commit of the one before it, and no other', async () => {
    const server = await pages(4)
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const chain = pagesOf(open(server.url), domainChain({ mayPrefetch }), async (body, page) => {
      if (page === 0) await gate
      return decode(body, page)
    })
    const first = chain.next()
    await eventually(() => expect(server.received).toHaveLength(1))
    await sleep(50)
    // Until it is decoded, its cursor is not known.
    expect(server.received).toHaveLength(1)
    release()
    expect((await first).value?.page.next).toBe('c0')
    await eventually(() => expect(server.received).toHaveLength(2))
    await sleep(50)
    // The consumer still has the first page.
    expect(server.received.map(({ json }) => json.from)).toEqual([undefined, 'c0'])
    expect((await chain.next()).value?.page.next).toBe('c1')
    await eventually(() => expect(server.received).toHaveLength(3))
    await chain.return()
  })

  it.each([
    ['an empty page', [], true],
    ['a page, if it may not', [1], false],
  ])('nothing is requested beside the commit of %s', async (_name, items, may) => {
    const server = await pages(4, items)
    const chain = pagesOf(open(server.url), domainChain({ mayPrefetch: () => may }))
    expect((await chain.next()).value?.page.next).toBe('c0')
    await sleep(50)
    expect(server.received).toHaveLength(1)
    expect((await chain.next()).value?.page.next).toBe('c1')
    await chain.return()
  })

  it('a cursor in a response that breaks is not requested', async () => {
    const server = await serve((_request, response, index) => {
      if (index === 0) response.end('{"items":[1,],"next":"wrong"}')
      else sendPage(response, index === 1 ? 'right' : null)
    })
    const pages = await collect(open(server.url), domainChain({ mayPrefetch }))
    expect(pages.map(({ page }) => page.next)).toEqual(['right', null])
    expect(server.received.map(({ json }) => json.from)).toEqual([undefined, undefined, 'right'])
    expect(pages.map(({ requests }) => requests)).toEqual([2, 1])
  })

  it('a page is aborted, and not retried, when its consumer leaves', async () => {
    let closed = false
    const server = await serve((_request, response, index) => {
      if (index === 0) return sendPage(response, 'a')
      response.on('close', () => {
        closed = true
      })
    })
    const chain = pagesOf(open(server.url), domainChain({ mayPrefetch }))
    await chain.next()
    await eventually(() => expect(server.received).toHaveLength(2))
    expect((await chain.return()).done).toBe(true)
    await eventually(() => expect(closed).toBe(true))
    await sleep(30)
    expect(server.received).toHaveLength(2)
  })

  it('a budget that is used up ends the chain after the pages it paid for', async () => {
    const server = await serve((_request, response, index) => sendPage(response, `c${index}`))
    const service = open(server.url, { limits: { maxRequests: 3, minSearchesRemaining: null } })
    const pages: (string | null)[] = []
    const error = await failure(
      (async () => {
        for await (const { page } of pagesOf(service, domainChain({ mayPrefetch }))) pages.push(page.next)
      })(),
    )
    expect(error.kind).toBe('quota')
    expect(pages).toEqual(['c0', 'c1', 'c2'])
    expect(server.received).toHaveLength(3)
  })
})
