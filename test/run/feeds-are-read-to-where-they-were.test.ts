import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sendPage, serveSearches } from '../extract/support.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { type FeedWorld, feedWorld, sorted } from './feed-world.ts'
import { exportsTo, itemAt } from './world.ts'

// A free slot prefetches pages. How many it requests depends on timing, so tests of requests allow one slot.
const ONE_SLOT = 'concurrency: 1'

const ORDERS = ['asc', 'desc'] as const

/** Parameters of the requests since some number of them. */
function requests({ sandbox }: FeedWorld, since = 0) {
  return sandbox.requests.slice(since).map(({ path, status, items }) => {
    const { searchParams } = new URL(path, 'http://sandbox')
    return { size: Number(searchParams.get('size')), from: searchParams.get('from'), status, items }
  })
}

/** How many, without the tests of the token. */
function asked({ requests }: FeedWorld['sandbox']): number {
  return requests.filter(({ kind }) => kind !== 'tokens').length
}

test.for(some(ORDERS, 1))(
  'nights of three identifiers with a row or two each take few requests, %s, and the state stays small',
  async (identifierOrder) => {
    const identifiers = [1, 2, 3]
    const world = await feedWorld(
      `identifiers: [${identifiers.join(', ')}], page_size: 20, ${ONE_SLOT}, max_requests: none`,
      {
        records: 135,
        domains: identifiers.map((id) => `d${id}.example`),
        until: '2024-03-31',
        identifierOrder,
      },
    )
    const nights = THOROUGH ? 40 : 4
    for (let night = 1; night <= nights; night++) {
      world.day = 30 + night
      expect((await world.run()).status).toBe('complete')
      expect(readdirSync(join(world.output, '_state'), { recursive: true }).length).toBeLessThanOrEqual(12)
    }
    for (const id of identifiers)
      expect(sorted(world.ids()[`query=feed.${id}`])).toEqual(sorted(world.expected(id)))
    // A night has two requests for each, of its end and its front, and one for each page that is full.
    const pages = requests(world).filter(({ items }) => items === 20).length
    expect(world.sandbox.requests.length).toBeLessThanOrEqual(6 * nights + pages)

    // Where nothing is new, two requests tell it.
    const before = asked(world.sandbox)
    await world.run()
    expect(asked(world.sandbox) - before).toBe(6)
  },
)

test('a feed keeps one size from the first page to the last, also where pages are short', async () => {
  const server = await serveSearches(({ url }, response) => {
    const from = Number(new URL(url, 'http://feed').searchParams.get('from') ?? 0)
    const items = Array.from({ length: 60 }, (_, i) => itemAt(900_000_001 + from + i, '2024-01-05T00:00:00Z'))
    sendPage(response, from + 60 < 600 ? String(from + 60) : null, items)
  })
  const here = exportsTo()
  const run = (budget: string) => here.run(server.url, 'token', `resource: feed, max_requests: ${budget}`)
  for (const done of [3, 6, 9]) {
    await run('3')
    expect(server.received).toHaveLength(done)
  }
  expect(await run('none')).toMatchObject({ status: 'complete' })
  expect(server.received).toHaveLength(10)
  expect(server.received.every(({ url }) => url.includes('size=100'))).toBe(true)
  expect(new Set(here.ids()).size).toBe(600)
})

test.for(some(ORDERS, 1))(
  'runs of one request read all feeds in turn, at both ends: %s',
  async (identifierOrder) => {
    const feeds = `identifiers: [1, 2, 3], page_size: 200, ${ONE_SLOT}`
    const world = await feedWorld(feeds, { records: 20, identifierOrder })
    world.day = 100
    let exported = (await world.run()).rows
    for (const day of THOROUGH ? [150, 200] : [150]) {
      world.day = day
      for (let run = 0; run < 9; run++) {
        const { requests, rows } = await world.run(`${feeds}, max_requests: 1`)
        expect(requests).toBe(1)
        // It publishes what it has.
        exported += rows
        expect(Object.values(world.ids()).flat()).toHaveLength(exported)
      }
      for (const id of [1, 2, 3])
        expect(sorted(world.ids()[`query=feed.${id}`])).toEqual(sorted(world.expected(id)))
    }
  },
)
