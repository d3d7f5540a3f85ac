import { access, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type DecodedPage, nameQuery, partition, type QuarantineLimit } from '../../src/core/index.ts'
import {
  type RunSummary,
  readPipeline,
  readPlan,
  readStatus,
  runOptions,
  runPipeline,
} from '../../src/index.ts'
import { excessOf } from '../../src/run/quarantine-limit.ts'
import type { PartitionRecord } from '../../src/state/index.ts'
import { sendPage, serve } from '../extract/support.ts'
import { credential } from '../transform/credentials.ts'

const KEY = 'domain.acme.example/all'

describe('the limit', () => {
  const acme = partition(nameQuery({ type: 'domain', fqdn: 'acme.example' }, 'acme.example'), null)
  const record = (rows: number, quarantined: number) => ({ rows, quarantined }) as PartitionRecord
  const page = (rows: number, quarantined: number) =>
    ({ rows, quarantined: Array.from({ length: quarantined }) }) as unknown as DecodedPage
  const fails = (limit: QuarantineLimit, ...parts: Parameters<typeof record>): boolean =>
    excessOf(acme, limit, record(...parts)) !== null

  it.each([
    [99, 99, false],
    [100, 1, false],
    [100, 2, true],
    [100, 100, true],
    [10_000, 100, false],
    [10_000, 101, true],
    [1_000_000, 0, false],
  ])('of 1%% takes %d items with %d refused: too many is %s', (seen, quarantined, tooMany) => {
    expect(fails({ kind: 'share', percent: 1 }, seen - quarantined, quarantined)).toBe(tooMany)
  })

  it('as a count holds from the first item on', () => {
    expect(fails({ kind: 'count', items: 0 }, 0, 0)).toBe(false)
    expect(fails({ kind: 'count', items: 0 }, 0, 1)).toBe(true)
    expect(fails({ kind: 'count', items: 5 }, 0, 5)).toBe(false)
    expect(fails({ kind: 'count', items: 5 }, 1_000_000, 6)).toBe(true)
  })

  it('is the same however the items are spread over pages and runs, and is told with both counts', () => {
    const some = fc.nat(2000)
    const limit = fc.oneof(
      fc.nat(100).map((items): QuarantineLimit => ({ kind: 'count', items })),
      fc.integer({ min: 0, max: 400 }).map((n): QuarantineLimit => ({ kind: 'share', percent: n / 4 })),
    )
    fc.assert(
      fc.property(limit, some, some, some, some, (limit, rows, refused, moreRows, moreRefused) => {
        const [all, bad] = [rows + moreRows + refused + moreRefused, refused + moreRefused]
        const isTooMuch =
          limit.kind === 'count' ? bad > limit.items : all >= 100 && bad / all > limit.percent / 100 + 1e-12
        const error = excessOf(acme, limit, record(rows, refused), page(moreRows, moreRefused))
        expect(error !== null).toBe(isTooMuch && bad > 0)
        expect(excessOf(acme, limit, undefined, page(rows + moreRows, bad)) !== null).toBe(error !== null)
        if (error !== null) {
          expect(error).toMatchObject({ kind: 'data', where: KEY })
          expect(error.what).toContain(`${bad} of ${all} items break the schema`)
        }
      }),
      { numRuns: 2000 },
    )
  })
})

/** A service with one chain of pages, of which the test says how many items each has and how many are broken. */
async function service(pages: { good: number; broken: number }[]) {
  const server = await serve(({ json }, response) => {
    const number = typeof json.from === 'string' ? Number(json.from.slice(1)) : 0
    const { good, broken } = pages[number]!
    const items = Array.from({ length: good + broken }, (_, i) =>
      credential({
        id: number * 10_000 + i,
        identity_name: i < broken ? null : 'ada@acme.example',
        imported_at: `2024-07-22T19:${String(number).padStart(2, '0')}:00+00:00`,
      }),
    )
    sendPage(response, number + 1 < pages.length ? `c${number + 1}` : null, items)
  })
  const folder = await mkdtemp(join(tmpdir(), 'spillway-run-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const output = join(folder, 'out')
  const read = async (transform: string) => {
    const file = `name: trial
service: { base_url: '${server.url}', requests_per_second: 10000, retries: 0 }
extract: { domains: [acme.example], concurrency: 1 }
transform: ${transform}
load: { format: csv, path: out }
`
    await writeFile(join(folder, 'p.yaml'), file)
    return readPipeline('p.yaml', { env: {}, cwd: folder })
  }
  return {
    pages,
    server,
    async run(transform = '{}'): Promise<RunSummary> {
      const pipeline = await read(transform)
      return runPipeline(pipeline, await runOptions(pipeline, { env: { SPILLWAY_TOKEN: 'token' } }))
    },
    read,
    async quarantine(): Promise<number[]> {
      const names = await readdir(join(output, '_quarantine')).catch(() => [])
      const texts = await Promise.all(
        names.map((name) => readFile(join(output, '_quarantine', name), 'utf8')),
      )
      return texts.flatMap((text) => text.split('\n').slice(0, -1)).map((line) => JSON.parse(line).id)
    },
    async rows(): Promise<number[]> {
      const folder = join(output, 'credentials')
      const names = (await readdir(folder, { recursive: true }).catch(() => [])).filter((name) =>
        name.endsWith('.csv'),
      )
      const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
      return texts.flatMap((text) => text.split('\n').slice(1, -1)).map((line) => Number.parseInt(line, 10))
    },
    isWhole: () =>
      access(join(output, '_SUCCESS')).then(
        () => true,
        () => false,
      ),
  }
}

const FAILED = { status: 'failed', partitions: { total: 1, done: 0, failed: 1, pending: 0 } }
const DONE = { status: 'complete', partitions: { total: 1, done: 1, failed: 0, pending: 0 } }

it('when everything is broken the run fails and says so, with nothing exported and all of it to be looked at', async () => {
  const world = await service([{ good: 0, broken: 200 }])
  const summary = await world.run()
  expect(summary).toMatchObject({ ...FAILED, requests: 1, rows: 0 })
  expect(summary.failures).toEqual([
    {
      partition: KEY,
      message: `200 of 200 items break the schema, and transform.max_quarantined is 1% (${KEY}). Look at them in _quarantine and run again, with a higher transform.max_quarantined if they may be left out.`,
    },
  ])
  expect(await world.isWhole()).toBe(false)
  expect(await world.rows()).toEqual([])
  expect(await world.quarantine()).toHaveLength(200)
  const pipeline = await world.read('{}')
  expect((await readStatus(pipeline, Date.now())).totals).toMatchObject({ failed: 1, done: 0 })
  expect(
    (await readPlan(pipeline, await runOptions(pipeline, { env: {}, readSecret: async () => null })))
      .partitions,
  ).toMatchObject({ done: 0 })

  // Nothing becomes right by being done again.
  expect(await world.run()).toMatchObject(FAILED)
  expect(await world.isWhole()).toBe(false)
  expect(await world.quarantine()).toHaveLength(200)
})

it('a higher limit goes on from there, and everything comes once', async () => {
  const world = await service([
    { good: 300, broken: 3 },
    { good: 50, broken: 50 },
    { good: 100, broken: 0 },
    { good: 10, broken: 90 },
  ])
  expect(await world.run()).toMatchObject({ ...FAILED, requests: 2, rows: 300, quarantined: 3 })
  expect(await world.run('{ max_quarantined: 60 }')).toMatchObject({ ...FAILED, requests: 3, rows: 150 })
  expect(await world.run('{ max_quarantined: 100% }')).toMatchObject({ ...DONE, requests: 1, rows: 10 })
  expect(await world.isWhole()).toBe(true)
  const [rows, refused] = [await world.rows(), await world.quarantine()]
  expect([rows.length, refused.length]).toEqual([460, 143])
  expect(new Set([...rows, ...refused]).size).toBe(603)
})

it('what the service mends meanwhile is exported, and leaves nothing in quarantine', async () => {
  const world = await service([
    { good: 300, broken: 2 },
    { good: 50, broken: 50 },
  ])
  expect(await world.run()).toMatchObject(FAILED)
  expect(await world.quarantine()).toHaveLength(52)
  world.pages[1] = { good: 100, broken: 0 }
  expect(await world.run()).toMatchObject({ ...DONE, requests: 1, rows: 100 })
  expect((await world.quarantine()).sort((a, b) => a - b)).toEqual([0, 1])
  expect(await world.rows()).toHaveLength(400)
})

it('a first page that is mended leaves no file behind', async () => {
  const world = await service([{ good: 0, broken: 150 }])
  expect(await world.run()).toMatchObject(FAILED)
  world.pages[0] = { good: 150, broken: 0 }
  expect(await world.run()).toMatchObject(DONE)
  expect(await world.quarantine()).toEqual([])
})

it('pages of earlier runs count, and where they alone are too many nothing is asked', async () => {
  const world = await service([
    { good: 60, broken: 40 },
    { good: 100, broken: 0 },
    { good: 0, broken: 0 },
  ])
  expect(await world.run('{ max_quarantined: 45% }')).toMatchObject(DONE)
  const other = await service([
    { good: 60, broken: 40 },
    { good: 100, broken: 60 },
  ])
  expect(await other.run('{ max_quarantined: 50 }')).toMatchObject({ ...FAILED, requests: 2, rows: 60 })
  expect(await other.run('{ max_quarantined: 30 }')).toMatchObject({ ...FAILED, requests: 0 })
  expect(await other.run('{ max_quarantined: 30% }')).toMatchObject({ ...FAILED, requests: 0 })
  expect(await other.run('{ max_quarantined: 40% }')).toMatchObject({ ...DONE, requests: 1 })
})

it('early pages of few items may be as broken as they are, until there are a hundred', async () => {
  const world = await service([
    { good: 49, broken: 50 },
    { good: 1, broken: 0 },
  ])
  expect(await world.run()).toMatchObject({ ...FAILED, requests: 2, rows: 49, quarantined: 50 })
  const small = await service([{ good: 0, broken: 99 }])
  expect(await small.run()).toMatchObject(DONE)
  expect(await small.quarantine()).toHaveLength(99)
})

it('on_invalid: fail needs no limit', async () => {
  const world = await service([{ good: 300, broken: 1 }])
  const { failures } = await world.run('{ on_invalid: fail, max_quarantined: 100% }')
  expect(failures[0]?.message).toContain('Item 0 of the answer breaks the schema at identity_name')
  expect(await world.quarantine()).toEqual([])
})
