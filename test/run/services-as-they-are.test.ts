import { describe, expect, it, test } from 'vitest'
import { sendJson } from '../extract/support.ts'
import { type Habits, type MadeUpRow, madeUpService } from './made-up-service.ts'
import { exportsTo } from './world.ts'

const SECOND = 1_000_000
const WINDOWS = 'windows: { from: 2024-01-01, until: 2024-03-01, every: month }'
const extractOf = (more: string): string => `domains: [a.example], ${WINDOWS}, concurrency: 1, ${more}`

/** Rows a second apart. */
const seconds = (count: number, first = 1): MadeUpRow[] =>
  Array.from({ length: count }, (_, i) => ({ id: first + i, at: i * SECOND }))
const idsOf = (rows: readonly MadeUpRow[]): number[] => rows.map(({ id }) => id).sort((a, b) => a - b)
const sorted = (ids: readonly number[]): number[] => [...ids].sort((a, b) => a - b)

/** Fails some requests, by their number from 0 on. */
const failing =
  (status: number, from: number, until = from + 1, body = 'upstream request timeout'): Habits['fault'] =>
  (_request, response, index) => {
    if (index < from || index >= until) return false
    response.writeHead(status).end(body)
    return true
  }

type Step = { readonly extract?: string; readonly before?: (habits: Habits) => void }

type WorldOfAService = {
  readonly name: string
  readonly habits: Partial<Habits> & Pick<Habits, 'rows'>
  /** One run for each; the last one is complete. */
  readonly runs: readonly Step[]
  /** How many requests all runs take at most. */
  readonly requests: number
  readonly service?: string
}

/** By id, one row a little late. */
const byId = seconds(40).map((row) => (row.id === 35 ? { ...row, at: 29.5 * SECOND } : row))
const tied = Array.from({ length: 700 }, (_, i) => ({ id: i + 1, at: 5 * SECOND }))
const nanos = Array.from({ length: 20 }, (_, i) => ({ id: i + 1, at: 7 * SECOND + i, nanos: 789 }))

const WORLDS: readonly WorldOfAService[] = [
  {
    name: 'rows in order of id, one of them late, and one 504',
    habits: { rows: byId, by: 'id', fault: failing(504, 3) },
    runs: [{ extract: 'page_size: 10' }],
    requests: 5,
  },
  {
    name: 'rows in order of id, one of them late, and another page size in the next run',
    habits: { rows: byId, by: 'id' },
    runs: [{ extract: 'page_size: 10, max_requests: 3' }, { extract: 'page_size: 20' }],
    requests: 4,
  },
  {
    name: 'rows in order of id, and sizes bound to cursors: the same',
    habits: { rows: byId, by: 'id', bindsSizes: true },
    runs: [{ extract: 'page_size: 10, max_requests: 3' }, { extract: 'page_size: 20' }],
    requests: 5,
  },
  {
    name: 'rows in order of id, one of them late, and a cursor that is refused',
    habits: { rows: byId, by: 'id' },
    runs: [
      { extract: 'page_size: 10, max_requests: 3' },
      { extract: 'page_size: 10', before: (habits) => Object.assign(habits, { cursorKey: 'two' }) },
    ],
    requests: 8,
  },
  {
    name: 'rows in no order at all, and a cursor that is refused',
    habits: {
      rows: seconds(40).map((row) => ({ ...row, at: ((row.id * 7919) % 50) * 86_400 * SECOND })),
      by: 'id',
    },
    runs: [
      { extract: 'page_size: 10, max_requests: 3' },
      { extract: 'page_size: 10', before: (habits) => Object.assign(habits, { cursorKey: 'two' }) },
    ],
    requests: 8,
  },
  {
    name: 'seven hundred rows of one time, and pages that are served with a hundred rows from then on',
    habits: { rows: tied },
    runs: [
      { extract: 'page_size: 500, max_requests: 1' },
      { extract: 'page_size: 500', before: (habits) => Object.assign(habits, { most: 100 }) },
    ],
    // 500, 500, 250, 250, 125, 125, then four of 62.
    requests: 1 + 6 + 4,
  },
  {
    name: 'the same, with sizes bound to cursors: the chain begins again, and knows its rows',
    habits: { rows: tied, bindsSizes: true },
    runs: [
      { extract: 'page_size: 500, max_requests: 1' },
      { extract: 'page_size: 500', before: (habits) => Object.assign(habits, { most: 100 }) },
    ],
    // 500, 500, 250 refused; without the cursor 250, 250, 125, 125, then twelve of 62.
    requests: 1 + 3 + 4 + 12,
  },
  {
    name: 'newest first, with times in nanoseconds, and a cursor that is refused',
    habits: { rows: nanos },
    runs: [
      { extract: 'order: desc, page_size: 6, max_requests: 2' },
      {
        extract: 'order: desc, page_size: 6',
        before: (habits) => Object.assign(habits, { cursorKey: 'two' }),
      },
    ],
    requests: 8,
  },
  {
    name: 'eight quick 504s',
    habits: { rows: seconds(2000), fault: failing(504, 0, 8) },
    runs: [{}],
    // 10,000 to 1,250, each twice; then pages of 625.
    requests: 8 + 4,
  },
  {
    name: 'one 504 in many requests',
    habits: {
      rows: seconds(3000),
      fault: (_request, response, index) => {
        if (index % 15 !== 14) return false
        response.writeHead(504).end()
        return true
      },
    },
    runs: [{ extract: 'page_size: 50' }],
    requests: 60 + 5,
  },
  {
    name: 'HTML with any status, after the first page',
    habits: {
      rows: seconds(300),
      fault: (_request, response, index) => {
        if (index < 1 || index > 4) return false
        const pages = [' \n<!doctype html>', '\n<html>', '<p>']
        response.writeHead([403, 401, 200, 404][index - 1]!).end(pages[index % 3])
        return true
      },
    },
    runs: [{ extract: 'page_size: 100' }],
    requests: 3 + 4,
  },
]

async function exported({ habits, runs, service = 'retries: 8' }: WorldOfAService) {
  const server = await madeUpService({ fault: () => false, ...habits })
  const here = exportsTo()
  const outcomes = []
  for (const { extract = '', before } of runs) {
    before?.(server.habits)
    outcomes.push(await here.run(server.url, 'token', extractOf(extract), service))
  }
  return { server, here, outcomes }
}

describe('each row comes once, with few requests, from a service with', () => {
  it.each(WORLDS)('$name', async (world) => {
    const { server, here, outcomes } = await exported(world)
    expect(outcomes.at(-1)).toMatchObject({ status: 'complete', error: null })
    expect(sorted(here.ids())).toEqual(idsOf(world.habits.rows))
    expect(server.received.length).toBeLessThanOrEqual(world.requests)
  })
})

test('the first page of each chain asks for double of what was last served, up to the greatest', async () => {
  const server = await madeUpService({ rows: seconds(100), most: 300 })
  const here = exportsTo()
  const run = (name: string) =>
    here.run(server.url, 'token', `domains: [${name}], ${WINDOWS}, concurrency: 1, page_size: 1000`)
  await run('a.example')
  expect(server.sizes()).toEqual([1000, 1000, 500, 500, 250])
  server.habits.most = 10_000
  await run('a.example, b.example, c.example, d.example')
  expect(server.sizes().slice(5)).toEqual([500, 1000, 1000])
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

test('a 503 that comes at one size only ends with a message that names page_size', async () => {
  const server = await madeUpService({ rows: seconds(100) })
  server.habits.fault = ({ json }, response) => {
    if ((json.size as number) < 50) return false
    response.writeHead(503).end('no healthy upstream')
    return true
  }
  const here = exportsTo()
  const failed = await here.run(server.url, 'token', extractOf('page_size: 60'))
  expect(failed.failures[0]?.message).toContain(
    'If only pages of this size fail (60 rows), lower extract.page_size.',
  )
  expect(await here.run(server.url, 'token', extractOf('page_size: 40'))).toMatchObject({
    status: 'complete',
  })
})

describe('a refusal is the verdict on its query', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `d${i}.example`)
  async function refusing(isRefused: (name: string) => boolean, status: number, count: number) {
    const server = await madeUpService({ rows: seconds(3) })
    server.habits.fault = ({ json }, response) => {
      if (!isRefused((json.query as { fqdn: string }).fqdn)) return false
      sendJson(response, { error: { code: 'NO', message: 'no' } }, { status })
      return true
    }
    const here = exportsTo()
    const run = () => here.run(server.url, 'token', `domains: [${names(count)}], concurrency: 1`)
    return { server, run }
  }
  const numberOf = (name: string): number => Number(/\d+/.exec(name))

  it('twenty-one refused queries do not stop those after them', async () => {
    const { run } = await refusing((name) => numberOf(name) < 21, 422, 24)
    expect(await run()).toMatchObject({ status: 'failed', error: null, partitions: { done: 3, failed: 21 } })
  })

  it('two 404s before the first success are two verdicts, in the first run and later', async () => {
    const { run } = await refusing((name) => numberOf(name) < 2, 404, 3)
    for (let i = 0; i < 2; i++)
      expect(await run()).toMatchObject({ status: 'failed', error: null, partitions: { done: 1, failed: 2 } })
  })

  it('a 403 for one domain after a page leaves the others', async () => {
    const { run } = await refusing((name) => numberOf(name) === 1, 403, 3)
    for (let i = 0; i < 2; i++)
      expect(await run()).toMatchObject({ status: 'failed', error: null, partitions: { done: 2, failed: 1 } })
  })

  it('a 403 as the first answer that a data set gets is about the token', async () => {
    const { run } = await refusing(() => true, 403, 3)
    expect(await run()).toMatchObject({ status: 'failed', error: { kind: 'credentials' } })
  })
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
