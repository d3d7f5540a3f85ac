import { expect, test } from 'vitest'
import { orderOf } from '../../src/run/chains/feed.ts'
import { type FeedWorld, feedWorld, sorted } from './feed-world.ts'

const TENANT = 'query=feed.tenant'
const SECOND = 'query=feed.2'

// A free slot prefetches pages. How many it requests depends on timing, so tests of requests allow one slot.
const ONE_SLOT = 'concurrency: 1'

/** Parameters of the requests since some number of them. */
function requests({ sandbox }: FeedWorld, since = 0) {
  return sandbox.requests.slice(since).map(({ path, status, items }) => {
    const { searchParams } = new URL(path, 'http://sandbox')
    return { size: Number(searchParams.get('size')), from: searchParams.get('from'), status, items }
  })
}

test('a front that was read half-way is completed before it is read again', async () => {
  const world = await feedWorld(`identifiers: [2], page_size: 10, ${ONE_SLOT}`, { identifierOrder: 'desc' })
  world.day = 150
  await world.run()
  world.day = 300
  // Two pages of the new rows, then nothing for a while.
  const budget = `identifiers: [2], page_size: 10, max_requests: 2, ${ONE_SLOT}`
  expect((await world.run({ extract: budget })).status).toBe('budget')
  world.day = 340
  const before = world.sandbox.requests.length
  expect((await world.run()).status).toBe('complete')
  expect(sorted(world.ids()[SECOND])).toEqual(sorted(world.expected(2)))
  const sent = requests(world, before)
  expect(sent[0]?.from).not.toBeNull()
  expect(sent.filter(({ from }) => from === null)).toHaveLength(1)
})

test('a feed whose order is known is read at one end', async () => {
  for (const identifierOrder of ['asc', 'desc'] as const) {
    const world = await feedWorld(`identifiers: [2], page_size: 10, ${ONE_SLOT}`, { identifierOrder })
    world.day = 150
    await world.run()
    const before = world.sandbox.requests.length
    await world.run()
    const [only, ...others] = requests(world, before)
    expect(others).toEqual([])
    expect(only?.from === null).toBe(identifierOrder === 'desc')
  }
})

test('a feed of few rows is read at both ends, as its order is not known', async () => {
  const world = await feedWorld('identifiers: [2], page_size: 2', { records: 12, identifierOrder: 'desc' })
  for (const day of [0, 130, 131, 250, 400]) {
    world.day = day
    expect((await world.run()).status).toBe('complete')
    expect(sorted(world.ids()[SECOND])).toEqual(sorted(world.expected(2)))
  }
})

test('the order of a feed is that of most of its rows, once there are enough', () => {
  const identifier = { type: 'identifier', id: 1 } as const
  expect(orderOf({ rising: 19, falling: 0 }, identifier)).toBe('unknown')
  expect(orderOf({ rising: 20, falling: 0 }, identifier)).toBe('oldest first')
  expect(orderOf({ rising: 20, falling: 20 }, identifier)).toBe('unknown')
  expect(orderOf({ rising: 1, falling: 30 }, identifier)).toBe('newest first')
  expect(orderOf({ rising: 0, falling: 3 }, { type: 'tenant' })).toBe('oldest first')
  expect(orderOf({ rising: 0, falling: 30 }, { type: 'tenant' })).toBe('newest first')
})

test('pages grow from 100 while a feed is at its beginning, and no row comes twice', async () => {
  const world = await feedWorld(ONE_SLOT, { records: 1000 })
  world.day = 366
  const summary = await world.run()
  expect(summary.status).toBe('complete')
  expect(summary.rows).toBe(3000)
  expect(sorted(world.ids()[TENANT])).toEqual(sorted(world.expected(null)))
  expect(requests(world).map(({ size }) => size)).toEqual([100, 200, 400, 800, 1600, 3200])
})

test('pages stay as they are where responses take long', async () => {
  const service = 'timeout: 2s'
  const world = await feedWorld(ONE_SLOT, { records: 150, latencyMs: 150 }, service)
  world.day = 366
  expect((await world.run()).status).toBe('complete')
  expect(requests(world).every(({ size }) => size === 100)).toBe(true)
})

test('a size that the service refuses is not asked for again', async () => {
  const world = await feedWorld(ONE_SLOT, { records: 200, feedMaxSize: 250 })
  world.day = 366
  expect((await world.run()).status).toBe('complete')
  expect(sorted(world.ids()[TENANT])).toEqual(sorted(world.expected(null)))
  const sizes = requests(world).map(({ size }) => size)
  expect(sizes.slice(0, 4)).toEqual([100, 200, 400, 200])
  expect(sizes.slice(4).every((size) => size === 200)).toBe(true)
})

test('a refused cursor begins the pass again while all of its rows are known', async () => {
  const world = await feedWorld('page_size: 10, max_requests: 3', { cursorLifetimeMs: 3_600_000 })
  world.day = 100
  expect((await world.run()).status).toBe('budget')
  world.day = 101
  expect((await world.run({ extract: 'page_size: 10' })).status).toBe('complete')
  expect(sorted(world.ids()[TENANT])).toEqual(sorted(world.expected(null)))
})

test('an empty feed is complete, and its first rows come with a later run', async () => {
  const world = await feedWorld('', { records: 3 })
  world.day = -1
  const empty = await world.run()
  expect(empty.status).toBe('complete')
  expect(empty.rows).toBe(0)
  expect(world.isComplete()).toBe(true)
  world.day = 366
  expect((await world.run()).rows).toBe(9)
  expect((await world.run()).rows).toBe(0)
  expect(sorted(world.ids()[TENANT])).toEqual(sorted(world.expected(null)))
})

test('a state that changes later does not bring its row again', async () => {
  const world = await feedWorld('', { stateRate: 1 })
  for (const day of [50, 60, 70, 366, 500]) {
    world.day = day
    await world.run()
  }
  expect(sorted(world.ids()[TENANT])).toEqual(sorted(world.expected(null)))
})
