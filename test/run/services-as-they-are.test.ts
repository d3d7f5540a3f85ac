import { describe, expect, it, test } from 'vitest'
import { sendJson } from '../extract/support.ts'
import { type Habits, type MadeUpRow, madeUpService } from './made-up-service.ts'
import { exportsTo, fasterClock } from './world.ts'

const SECOND = 1_000_000
const WINDOWS = 'windows: { from: 2024-01-01, until: 2024-03-01, every: month }'
const extractOf = (more: string): string => `domains: [a.example], ${WINDOWS}, concurrency: 1, ${more}`

const seconds = (count: number, first = 1): MadeUpRow[] =>
  Array.from({ length: count }, (_, i) => ({ id: first + i, at: i * SECOND }))
const idsOf = (rows: readonly MadeUpRow[]): number[] => rows.map(({ id }) => id).sort((a, b) => a - b)

/** Fails some requests, by their number from 0 on. */
const failing =
  (status: number, from: number, until = from + 1, body = 'upstream request timeout'): Habits['fault'] =>
  (_request, response, index) => {
    if (index < from || index >= until) return false
    response.writeHead(status).end(body)
    return true
  }

type World = readonly [
  name: string,
  habits: Partial<Habits> & Pick<Habits, 'rows'>,
  /** One run for each. */
  extracts: readonly string[],
  /** What changes before the last one. */
  change: Partial<Habits>,
  /** How many requests all runs take at most. */
  requests: number,
]

/** One row a little late. */
const byId = seconds(40).map((row) => (row.id === 35 ? { ...row, at: 29.5 * SECOND } : row))
const BY_ID = { rows: byId, by: 'id' } as const
const unordered = seconds(40).map((row) => ({ ...row, at: ((row.id * 7919) % 50) * 86_400 * SECOND }))
const tied = Array.from({ length: 700 }, (_, i) => ({ id: i + 1, at: 5 * SECOND }))
const nanos = Array.from({ length: 20 }, (_, i) => ({ id: i + 1, at: 7 * SECOND + i, nanos: 789 }))
const STOPPED = 'page_size: 10, max_requests: 3'
const OF_500 = ['page_size: 500, max_requests: 1', 'page_size: 500']
const NEWEST = 'order: desc, page_size: 6'
const OTHER_KEY = { cursorKey: 'two' }
const PAGES = [' \n<!doctype html>', '\n<html>', '<p>']

const WORLDS: readonly World[] = [
  ['a late row and one 504', { ...BY_ID, fault: failing(504, 3) }, ['page_size: 10'], {}, 5],
  ['a late row, then another page size', BY_ID, [STOPPED, 'page_size: 20'], {}, 4],
  ['the same, sizes bound to cursors', { ...BY_ID, bindsSizes: true }, [STOPPED, 'page_size: 20'], {}, 5],
  ['a late row and a refused cursor', BY_ID, [STOPPED, 'page_size: 10'], OTHER_KEY, 8],
  ['no order and a refused cursor', { rows: unordered, by: 'id' }, [STOPPED, 'page_size: 10'], OTHER_KEY, 8],
  // 500, 500, 250, 250, 125, 125, then four of 62.
  ['rows of one time, then pages of a hundred', { rows: tied }, OF_500, { most: 100 }, 1 + 6 + 4],
  // 500, 500, 250 refused; without the cursor 250, 250, 125, 125, then twelve of 62.
  ['the same, sizes bound', { rows: tied, bindsSizes: true }, OF_500, { most: 100 }, 1 + 3 + 4 + 12],
  ['nanoseconds, newest first', { rows: nanos }, [`${NEWEST}, max_requests: 2`, NEWEST], OTHER_KEY, 8],
  // 10,000 to 1,250, each twice; then pages of 625.
  ['eight quick 504s', { rows: seconds(2000), fault: failing(504, 0, 8) }, [''], {}, 8 + 4],
  [
    'one 504 in many requests',
    { rows: seconds(1500), fault: (...given) => given[2] % 15 === 14 && failing(504, given[2])(...given) },
    ['page_size: 50'],
    {},
    30 + 3,
  ],
  [
    'HTML with any status, after the first page',
    {
      rows: seconds(300),
      fault(_request, response, index) {
        const status = [403, 401, 200, 404, 400, 410, 408][index - 1]
        if (status !== undefined) response.writeHead(status).end(PAGES[index % 3])
        return status !== undefined
      },
    },
    ['page_size: 100'],
    {},
    // A 408 may be about the size: it is asked for once more, then in halves.
    3 + 9,
  ],
]

describe('each row comes once, with few requests, from a service with', () => {
  it.each(WORLDS)('%s', async (_, habits, extracts, change, requests) => {
    const server = await madeUpService(habits)
    const here = exportsTo()
    let last: unknown
    for (const [i, extract] of extracts.entries()) {
      if (i > 0) Object.assign(server.habits, change)
      last = await here.run(server.url, 'token', extractOf(extract), 'retries: 8')
    }
    expect(last).toMatchObject({ status: 'complete', error: null })
    expect(here.ids()).toEqual(idsOf(habits.rows))
    expect(server.received.length).toBeLessThanOrEqual(requests)
  })
})

test('a run that stops while rows come again leaves it to the next one to know them', async () => {
  // Late by days, and more than the last two pages have.
  const rows = seconds(40_001).map((row) => ({ ...row, at: (row.id % 2) * 86_400 * SECOND }))
  const server = await madeUpService({ rows, by: 'id' })
  const here = exportsTo()
  const run = (more: string) =>
    here.run(server.url, 'token', `domains: [a.example], page_size: 10000, ${more}`)
  await run('max_requests: 4')
  server.habits.cursorKey = 'two'
  // The cursor is refused, and the first page comes again.
  await run('max_requests: 2')
  expect(await run('')).toMatchObject({ status: 'complete', rows: 1 })
  expect(here.ids()).toHaveLength(40_001)
})

test('a service that binds sizes is asked once, and its cursors keep their sizes from then on', async () => {
  const server = await madeUpService({ rows: seconds(100), bindsSizes: true })
  const here = exportsTo()
  const run = (more: string) => here.run(server.url, 'token', extractOf(more))
  await run('page_size: 10, max_requests: 2')
  await run('page_size: 20, max_requests: 2')
  await run('page_size: 30, max_requests: 2')
  await run('page_size: 40')
  expect(server.sizes()).toEqual([10, 10, 20, ...Array<number>(8).fill(10)])
  expect(here.ids()).toHaveLength(100)
})

test('an outage leaves the cursor as it is, and the next run goes on with it', async () => {
  const server = await madeUpService({ rows: seconds(100) })
  const here = exportsTo()
  const run = (more: string) => here.run(server.url, 'token', `domains: [a.example], ${more}`, 'retries: 1')
  await run('page_size: 40, max_requests: 1')
  server.habits.fault = failing(504, 0, 1000)
  expect(await run('page_size: 40')).toMatchObject({ status: 'failed' })
  expect(server.received.length).toBeLessThanOrEqual(1 + 3 * 2 + 2)
  server.habits.fault = () => false
  const sent = server.received.length
  expect(await run('page_size: 40')).toMatchObject({ status: 'complete' })
  expect(server.received.slice(sent).map(({ json }) => JSON.parse(String(json.from)).start)).toEqual([40, 80])
})

describe('a refusal is the verdict on its query', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `d${i}.example`)
  /** A run against a service that refuses queries of some numbers. */
  async function refusing(isRefused: (number: number) => boolean, status: number, count: number) {
    const server = await madeUpService({ rows: seconds(3) })
    server.habits.fault = ({ json }, response) => {
      if (!isRefused(Number(/\d+/.exec((json.query as { fqdn: string }).fqdn)))) return false
      sendJson(response, { error: { code: 'NO', message: 'no' } }, { status })
      return true
    }
    const here = exportsTo()
    const run = () => here.run(server.url, 'token', `domains: [${names(count)}], concurrency: 1`)
    return { run, log: here.log }
  }

  it('twenty-one refused queries do not stop those after them', async () => {
    const { run } = await refusing((number) => number < 21, 422, 24)
    expect(await run()).toMatchObject({ status: 'failed', error: null, partitions: { done: 3, failed: 21 } })
  })

  it.each([404, 403])('those after a first success are, in the first run and later: %i', async (status) => {
    const { run, log } = await refusing((number) => number === 1 || number > 2, status, 5)
    for (let i = 0; i < 2; i++)
      expect(await run()).toMatchObject({ status: 'failed', error: null, partitions: { done: 2, failed: 3 } })
    // Each is said once in each run.
    expect(log.filter(({ message }) => message.includes(`responded with ${status}`))).toHaveLength(6)
  })

  it('a 403 as the first answer that a data set gets is about the token', async () => {
    const { run } = await refusing(() => true, 403, 3)
    expect(await run()).toMatchObject({ status: 'failed', error: { kind: 'credentials' } })
  })
})

test('429 to every request for two minutes ends the run: it is one outage, and fails no partition', async () => {
  const server = await madeUpService({ rows: seconds(3) })
  const here = exportsTo()
  const extract = `domains: [${Array.from({ length: 30 }, (_, i) => `d${i}.example`)}], concurrency: 4`
  let pages = 0
  server.habits.fault = (_request, response) => {
    if (++pages <= 2) return false
    sendJson(
      response,
      { error: { code: 'RATELIMIT_REACHED' } },
      { status: 429, headers: { 'retry-after': '20' } },
    )
    return true
  }
  const ended = await here.run(server.url, 'token', extract, 'retries: 8', fasterClock(100))
  expect(ended).toMatchObject({
    status: 'failed',
    error: {
      kind: 'transient',
      what: 'The service responded with 429: RATELIMIT_REACHED, and to every request for two minutes',
    },
    partitions: { done: 2, failed: 0, pending: 28 },
  })
  // Not as many as each partition has retries.
  expect(pages).toBeLessThan(2 + 4 * 9)
  server.habits.fault = () => false
  expect(await here.run(server.url, 'token', extract)).toMatchObject({ status: 'complete', rows: 28 * 3 })
})

test('a complete answer of another shape is requested once more only', async () => {
  const server = await madeUpService({ rows: seconds(3) })
  server.habits.fault = (_request, response) => {
    sendJson(response, { results: [] })
    return true
  }
  const here = exportsTo()
  const failed = await here.run(server.url, 'token', 'domains: [a.example]', 'retries: 8')
  expect(failed).toMatchObject({ status: 'failed', requests: 2 })
})
