import { describe, expect, it } from 'vitest'
import type { Window } from '../../src/core/index.ts'
import type { Service } from '../../src/extract/index.ts'
import { collect, domainChain, open, pagesOf, sendPage, serve } from './support.ts'

const at = (text: string): number => Date.parse(`${text}T00:00:00Z`) * 1000

const YEAR: Window = { from: at('2024-01-01'), until: at('2025-01-01') }
const FILTER = { gte: '2024-01-01T00:00:00Z', lte: '2025-01-01T00:00:00Z' }

function pages(count: number) {
  return serve((_request, response, index) => sendPage(response, index + 1 < count ? `c${index}` : null))
}

/** Follows a chain until so many pages are committed. @returns how many pages it received */
async function followed(service: Service, most: number): Promise<number> {
  let committed = 0
  for await (const _page of pagesOf(service, domainChain({ window: YEAR }))) if (++committed === most) break
  return committed
}

it.each([
  [2, 2],
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
  it.each(['asc', 'desc'] as const)('is the same on every page: %s', async (order) => {
    const server = await pages(4)
    await collect(open(server.url), domainChain({ window: YEAR, order }))
    expect(server.received.map(({ json }) => json.filters)).toEqual(
      Array.from({ length: 4 }, () => ({ imported_at: FILTER })),
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
    ['desc', YEAR, LAST, { ...FILTER, lte: LAST_OF_ALL }],
    ['asc', null, JUNE, { gte: EARLY_JUNE }],
  ] as const)(
    'begins at an instant after a restart, on every page, with its other end unchanged: %s in %o',
    async (order, window, since, filter) => {
      const server = await pages(3)
      await collect(open(server.url), domainChain({ window, order, since }))
      expect(server.received.map(({ json }) => json.filters)).toEqual(
        Array.from({ length: 3 }, () => ({ imported_at: filter })),
      )
      expect(server.received.map(({ json }) => json.from)).toEqual([undefined, 'c0', 'c1'])
    },
  )
})
