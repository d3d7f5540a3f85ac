import { describe, expect, it } from 'vitest'
import type { LoggedRequest } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { exportsTo, sandboxOf } from './world.ts'

const ROWS = THOROUGH ? 8000 : 700
const SECOND = "search_path: '/astp/v2/credentials/_search'"
const DOMAIN = 'quillmere.net'
const EXTRACT = `domains: [${DOMAIN}], windows: { from: 2024-01-01, until: 2025-01-01, every: month }, concurrency: 1, max_requests: none`

const sizeOf = ({ body }: LoggedRequest): number => (body as { size: number }).size
const searchesOf = (requests: readonly LoggedRequest[]) => requests.filter(({ kind }) => kind === 'search')
const failuresOf = (requests: readonly LoggedRequest[]) => requests.filter(({ status }) => status !== 200)

/** A service that serves pages of up to 300 rows in time. */
const slow = (records: number, domains: readonly string[] = [DOMAIN]) =>
  sandboxOf({ records, domains, msPerRow: 0.01, gatewayTimeoutMs: 3, cursorKey: 'one' })

/** Each size is asked for twice. */
const twice = (...sizes: readonly number[]): readonly number[] => sizes.flatMap((size) => [size, size])
const TOO_LARGE = twice(10_000, 5000, 2500, 1250, 625, 312)

describe('a service that serves no more than 300 rows in time', () => {
  it('gets half the size until pages come in time, and that size for all that follows', async () => {
    const sandbox = await slow(ROWS)
    const here = exportsTo()
    const summary = await here.run(sandbox.origin, sandbox.token, EXTRACT, SECOND)
    expect(summary).toMatchObject({ status: 'complete', rows: ROWS, retries: 12, repeated: 0 })
    expect(summary.service.pageSize).toBe(156)
    const sizes = searchesOf(sandbox.requests).map(sizeOf)
    const pages = Math.ceil(ROWS / 156)
    expect(sizes).toEqual([...TOO_LARGE, ...Array<number>(pages).fill(156)])

    // The bytes depend on the rows alone.
    const other = exportsTo()
    const plain = await sandboxOf({ records: ROWS, domains: [DOMAIN], cursorKey: 'one' })
    await other.run(plain.origin, plain.token, `${EXTRACT}, page_size: 1000`, SECOND)
    expect(await here.shards()).toEqual(await other.shards())
  })

  const slots = [
    ['four queries', `domains: [a.example, b.example, c.example, d.example]`],
    ['four chains of one query', EXTRACT.replace(/, concurrency.*/, '').replace(DOMAIN, 'a.example')],
  ] as const
  it.each(some(slots, 1))('is asked for few large pages by %s beside each other', async (_name, queries) => {
    const sandbox = await slow(THOROUGH ? 4000 : 700, ['a.example', 'b.example', 'c.example', 'd.example'])
    const here = exportsTo()
    const extract = `${queries}, concurrency: 4, max_requests: none, monthly_searches: 500`
    const summary = await here.run(sandbox.baseUrl, sandbox.token, extract)
    expect(summary).toMatchObject({ status: 'complete', repeated: 0 })
    expect(failuresOf(searchesOf(sandbox.requests)).length).toBeLessThanOrEqual(4 * TOO_LARGE.length)
  })

  it('gets double the last page size with the first page of the next run, and status shows it', async () => {
    const sandbox = await slow(ROWS)
    const here = exportsTo()
    const budget = EXTRACT.replace('max_requests: none', 'max_requests: 14')
    const first = await here.run(sandbox.origin, sandbox.token, budget, SECOND)
    expect(first).toMatchObject({ status: 'budget', requests: 14 })
    const { service } = await here.status(sandbox.origin, EXTRACT)
    expect(service).toEqual({ pageSize: 156 })
    const { status } = await here.run(sandbox.origin, sandbox.token, EXTRACT, SECOND)
    expect(status).toBe('complete')
    // The sandbox binds sizes to cursors.
    const sizes = searchesOf(sandbox.requests).slice(12).map(sizeOf)
    expect(sizes.slice(0, 3)).toEqual([156, 156, 312])
    expect(new Set(sizes.slice(3))).toEqual(new Set([156]))
    expect(new Set(here.ids()).size).toBe(ROWS)
  })
})
