import { describe, expect, it } from 'vitest'
import type { Window } from '../../src/core/index.ts'
import { SeenCursors } from '../../src/rows/index.ts'
import { collect, decode, domainChain, failure, open, pagesOf, sendPage, serve } from './support.ts'

describe('a chain of cursors', () => {
  it('sends next back as from, the rest unchanged, until next is null', async () => {
    const server = await serve((_request, response, index) =>
      sendPage(response, ['a', 'b', null][index] ?? null),
    )
    const pages = await collect(open(server.url), domainChain())
    expect(pages.map(({ page }) => page.next)).toEqual(['a', 'b', null])
    expect(pages.map(({ requests }) => requests)).toEqual([1, 1, 1])
    expect(server.received.map(({ json }) => json.from)).toEqual([undefined, 'a', 'b'])
    const withoutCursor = server.received.map(({ json }) => ({ ...json, from: undefined }))
    expect(withoutCursor[1]).toEqual(withoutCursor[0])
    expect(withoutCursor[2]).toEqual(withoutCursor[0])
  })

  it('resumes from a saved cursor and counts pages from there', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    const indexes: number[] = []
    await collect(open(server.url), domainChain({ cursor: 'saved', page: 41 }), async (body, page) => {
      indexes.push(page)
      return decode(body, page)
    })
    expect(server.received.map(({ json }) => json.from)).toEqual(['saved'])
    expect(indexes).toEqual([41])
  })

  it('continues after an empty and after a short page', async () => {
    const server = await serve((_request, response, index) =>
      sendPage(response, index < 99 ? `c${index}` : null, index === 50 ? [1] : []),
    )
    expect(await collect(open(server.url), domainChain())).toHaveLength(100)
  })

  it('fails after a hundred empty pages in a row, and returns the last of them', async () => {
    const server = await serve((_request, response, index) => sendPage(response, `c${index}`, []))
    const pages: (string | null)[] = []
    const service = open(server.url)
    const error = await failure(
      (async () => {
        for await (const { page } of pagesOf(service, domainChain())) pages.push(page.next)
      })(),
    )
    expect(error.kind).toBe('data')
    expect(error.message).toContain('Run again to resume from there')
    expect(pages.at(-1)).toBe('c99')
    expect(server.received).toHaveLength(100)
  })

  const OF_EARLIER = new SeenCursors()
  OF_EARLIER.add('a')
  it.each<[string, string[], Parameters<typeof domainChain>[0]]>([
    ['the one just sent', ['a', 'a'], {}],
    ['an older one', ['a', 'b', 'c', 'a'], {}],
    ['an older one, where it may prefetch', ['a', 'b', 'a'], { mayPrefetch: () => true }],
    ['one of an earlier run', ['a'], { cursor: 'b', seen: OF_EARLIER }],
  ])('fails before a page that repeats a cursor: %s', async (_name, nexts, options) => {
    const server = await serve((_request, response, index) => sendPage(response, nexts[index] ?? null))
    const seen: (string | null)[] = []
    const error = await failure(
      collect(open(server.url), domainChain(options), async (body, index) => {
        const page = await decode(body, index)
        seen.push(page.next)
        return page
      }),
    )
    expect(error.kind).toBe('data')
    expect(seen).toEqual(nexts)
    expect(server.received).toHaveLength(nexts.length)
  })

  it.each([
    ['as long as may be', 'x'.repeat(65_536), false],
    ['two bytes longer', 'ü'.repeat(32_769), true],
  ])('accepts a cursor up to 64 kB: %s', async (_name, cursor, isRefused) => {
    const server = await serve((_request, response, index) => sendPage(response, index === 0 ? cursor : null))
    const service = open(server.url, { settings: { maxResponseBytes: 10_000_000 } })
    if (!isRefused) return void expect(await collect(service, domainChain())).toHaveLength(2)
    const error = await failure(collect(service, domainChain()))
    expect(error.kind).toBe('data')
    expect(error.message).toContain(`a cursor of ${Buffer.byteLength(cursor)} bytes`)
    expect(error.message.length).toBeLessThan(400)
    expect(server.received).toHaveLength(1)
  })

  it('has saved the cursor of a page when the page is returned', async () => {
    const server = await serve((_request, response) => sendPage(response, 'a'))
    const chain = domainChain()
    const pages = pagesOf(open(server.url), chain)
    await pages.next()
    expect(chain.seen.has('a')).toBe(true)
    await pages.return()
  })

  it('fails at once with any other error of the decoder', async () => {
    const server = await serve((_request, response) => sendPage(response, null))
    const fault = new TypeError('a defect')
    const pages = collect(open(server.url), domainChain(), async () => {
      throw fault
    })
    await expect(pages).rejects.toBe(fault)
    expect(server.received).toHaveLength(1)
  })
})

const at = (text: string): number => Date.parse(`${text}T00:00:00Z`) * 1000

const YEAR: Window = { from: at('2024-01-01'), until: at('2025-01-01') }
const FILTER = { gte: '2024-01-01T00:00:00Z', lte: '2025-01-01T00:00:00Z' }

function pages(count: number) {
  return serve((_request, response, index) => sendPage(response, index + 1 < count ? `c${index}` : null))
}

it('a chain whose windows are all done after a page sends no further request', async () => {
  const server = await pages(9)
  const service = open(server.url)
  let committed = 0
  for await (const _page of pagesOf(service, domainChain({ window: YEAR }))) if (++committed === 2) break
  expect(service.counters.requests).toBe(2)
  expect(server.received).toHaveLength(2)
})

const JUNE = at('2024-06-01') + 7
const EARLY_JUNE = '2024-06-01T00:00:00.000007Z'
// A double cannot represent it.
const LAST = '253402300799999999'
const LAST_OF_ALL = '9999-12-31T23:59:59.999999Z'
it.each([
  ['asc', YEAR, JUNE, { ...FILTER, gte: EARLY_JUNE }],
  ['desc', YEAR, JUNE, { ...FILTER, lte: EARLY_JUNE }],
  ['desc', YEAR, LAST, { ...FILTER, lte: LAST_OF_ALL }],
  ['asc', null, JUNE, { gte: EARLY_JUNE }],
] as const)(
  'the filter of a chain that begins anew begins at an instant, on every page, with its other end unchanged: %s in %o',
  async (order, window, since, filter) => {
    const server = await pages(3)
    await collect(open(server.url), domainChain({ window, order, since }))
    expect(server.received.map(({ json }) => json.filters)).toEqual(
      Array.from({ length: 3 }, () => ({ imported_at: filter })),
    )
    expect(server.received.map(({ json }) => json.from)).toEqual([undefined, 'c0', 'c1'])
  },
)
