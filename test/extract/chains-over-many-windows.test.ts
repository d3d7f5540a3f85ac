import { describe, expect, it } from 'vitest'
import type { Window } from '../../src/core/index.ts'
import { extractPages, type Service } from '../../src/extract/index.ts'
import type { DecodePage, PageContext } from '../../src/rows/index.ts'
import { collect, decode, domainChain, open, sendPage, serve } from './support.ts'

const at = (text: string): number => Date.parse(`${text}T00:00:00Z`) * 1000

const YEAR: Window = { from: at('2024-01-01'), until: at('2025-01-01') }
const FILTER = { gte: '2024-01-01T00:00:00Z', lte: '2025-01-01T00:00:00Z' }

function pages(count: number) {
  return serve((_request, response, index) => sendPage(response, index + 1 < count ? `c${index}` : null))
}

/** Follows a chain until so many pages are committed. @returns how many pages it received */
async function followed(service: Service, most: number): Promise<number> {
  let committed = 0
  const chain = domainChain({ window: YEAR, isOver: () => committed >= most })
  for await (const _page of extractPages(service, chain, decode)) committed++
  return committed
}

function listening(): { decode: DecodePage; contexts: PageContext[] } {
  const contexts: PageContext[] = []
  return {
    contexts,
    decode: async (body, context) => {
      contexts.push(context)
      return decode(body, context)
    },
  }
}

it.each([
  [1, 1],
  [2, 2],
  [5, 5],
  [10, 9],
])(
  'a chain whose windows are all done after page %d sends no further request, though there are nine: %d',
  async (last, most) => {
    const server = await pages(9)
    const service = open(server.url)
    expect(await followed(service, last)).toBe(most)
    expect(service.counters.requests).toBe(most)
    expect(server.received).toHaveLength(most)
  },
)

describe('the filter of a chain', () => {
  it.each(['asc', 'desc'] as const)(
    'is the same on every page, however little of the range is left: %s',
    async (order) => {
      const server = await pages(4)
      let own = YEAR
      const heard = listening()
      const chain = domainChain({ window: YEAR, order, own: () => own })
      for await (const _page of extractPages(open(server.url), chain, heard.decode)) {
        const quarter = (own.until - own.from) / 4
        own = order === 'asc' ? { ...own, until: own.until - quarter } : { ...own, from: own.from + quarter }
      }
      expect(server.received.map(({ json }) => json.filters)).toEqual(
        Array.from({ length: 4 }, () => ({ imported_at: FILTER })),
      )
      expect(new Set(heard.contexts.map(({ requested }) => requested))).toEqual(new Set([YEAR]))
      // Each page is decoded with the range that is left by then.
      const lengths = heard.contexts.map(({ own }) => (own!.until - own!.from) / (YEAR.until - YEAR.from))
      expect(lengths).toEqual([1, 0.75, 0.5625, 0.421875])
    },
  )

  it('is passed to the decoder with the partition of the resume position', async () => {
    const server = await pages(3)
    const heard = listening()
    let partition = 0
    const chain = domainChain({ window: YEAR, partition: () => `domain.acme.example/${partition}` })
    for await (const _page of extractPages(open(server.url), chain, heard.decode)) partition++
    expect(heard.contexts).toMatchObject(
      [0, 1, 2].map((page) => ({
        query: { type: 'domain', fqdn: 'acme.example', name: 'domain.acme.example' },
        partition: `domain.acme.example/${page}`,
        page,
        requested: YEAR,
        own: YEAR,
        since: null,
      })),
    )
  })

  const JUNE = at('2024-06-01') + 7
  const EARLY_JUNE = '2024-06-01T00:00:00.000007Z'
  // A double cannot represent it.
  const LAST = '253402300799999999'
  const LAST_OF_ALL = '9999-12-31T23:59:59.999999Z'
  it.each([
    ['asc', YEAR, JUNE, { ...FILTER, gte: EARLY_JUNE }],
    ['desc', YEAR, JUNE, { ...FILTER, lte: EARLY_JUNE }],
    ['asc', YEAR, LAST, { ...FILTER, gte: LAST_OF_ALL }],
    ['desc', YEAR, LAST, { ...FILTER, lte: LAST_OF_ALL }],
    ['asc', null, JUNE, { gte: EARLY_JUNE }],
    ['desc', null, JUNE, { lte: EARLY_JUNE }],
  ] as const)(
    'begins at an instant after a restart, on every page, with its other end unchanged: %s in %o',
    async (order, window, since, filter) => {
      const server = await pages(3)
      const heard = listening()
      // The range that is left does not change the filter.
      const own = window && { from: at('2024-05-01'), until: at('2024-08-01') }
      const chain = domainChain({ window, own: () => own, order, since })
      await collect(open(server.url), chain, heard.decode)
      expect(server.received.map(({ json }) => json.filters)).toEqual(
        Array.from({ length: 3 }, () => ({ imported_at: filter })),
      )
      expect(server.received.map(({ json }) => json.from)).toEqual([undefined, 'c0', 'c1'])
      for (const context of heard.contexts) expect(context).toMatchObject({ requested: window, own, since })
    },
  )
})
