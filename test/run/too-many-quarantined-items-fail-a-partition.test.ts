import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nameQuery, partition, type QuarantineLimit } from '../../src/core/index.ts'
import { readPlan } from '../../src/data-set/index.ts'
import { quarantinePath } from '../../src/load/index.ts'
import type { RejectedItem } from '../../src/rows/index.ts'
import { type Added, excessOf, PartitionFault } from '../../src/run/follow/pages/quarantine.ts'
import { runOptions } from '../../src/run-options.ts'
import type { FoldedPartition } from '../../src/state/index.ts'
import { sendPage, serveSearches } from '../extract/support.ts'
import { readStatus } from '../support/rooms.ts'
import { summaryPageIn } from '../support/summary-page.ts'
import { cases } from '../support/thorough.ts'
import { credential } from '../transform/credentials.ts'
import { brokenAt, itemAt, serviceOf, worldAt } from './world.ts'

const KEY = 'domain.acme.example/all'

const acme = partition(nameQuery({ type: 'domain', fqdn: 'acme.example' }, 'acme.example'), null)

function record(rows: number, quarantined: number): FoldedPartition {
  const counts = { pages: 1, requests: 1, repeated: 0, forgotten: 0, quarantineEnd: 0 }
  return { state: 'partial', rows, quarantined, ...counts, error: null }
}

function page(rows: number, rejected: number): Added {
  const item = (index: number): RejectedItem => ({ at: null, index, id: null, issues: [], item: {} })
  return { rows, rejected: Array.from({ length: rejected }, (_, index) => item(index)) }
}

it('the limit does not depend on pages and runs, and its error shows both counts', () => {
  const some = fc.nat(2000)
  const limit = fc.oneof(
    fc.nat(100).map((items): QuarantineLimit => ({ kind: 'count', items })),
    fc.integer({ min: 0, max: 400 }).map((n): QuarantineLimit => ({ kind: 'share', percent: n / 4 })),
  )
  fc.assert(
    fc.property(limit, some, some, some, some, (limit, rows, rejected, moreRows, moreRefused) => {
      const [all, refusedInAll] = [rows + moreRows + rejected + moreRefused, rejected + moreRefused]
      const isTooMuch =
        limit.kind === 'count'
          ? refusedInAll > limit.items
          : all >= 100 && refusedInAll / all > limit.percent / 100 + 1e-12
      const transform = { maxQuarantined: limit }
      const error = excessOf(acme, 3, transform, record(rows, rejected), page(moreRows, moreRefused))
      expect(error !== null).toBe(isTooMuch && refusedInAll > 0)
      const all1 = excessOf(acme, 3, transform, undefined, page(rows + moreRows, refusedInAll))
      const all2 = excessOf(acme, 3, transform, record(rows + moreRows, refusedInAll))
      expect([all1, all2].map((other) => other?.message)).toEqual([error?.message, error?.message])
      if (error !== null) {
        expect(error).toBeInstanceOf(PartitionFault)
        expect(error).toMatchObject({ kind: 'data', where: KEY, index: 3 })
        expect(error.what).toContain(`${refusedInAll} of ${all} items break the schema`)
      }
    }),
    { numRuns: cases(2000, 60) },
  )
})

/** A service with one chain of pages. The test sets the items of each page, and how many are broken. */
async function service(pages: { good: number; broken: number }[]) {
  const server = await serveSearches(({ json }, response) => {
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
  return { pages, server, ...worldAt(server.url, 'domains: [acme.example], concurrency: 1') }
}

const FAILED = { status: 'failed', partitions: { total: 1, done: 0, failed: 1, pending: 0 } }
const DONE = { status: 'complete', partitions: { total: 1, done: 1, failed: 0, pending: 0 } }

it('a run with only broken items fails, exports nothing and quarantines all; another requests nothing', async () => {
  const world = await service([{ good: 0, broken: 200 }])
  const summary = await world.run()
  expect(summary).toMatchObject({ ...FAILED, requests: 1, rows: 0, quarantined: 200 })
  const [failure] = summary.failures
  expect(failure?.partition).toBe(KEY)
  expect(failure?.message).toContain(
    `200 of 200 items break the schema, and transform.max_quarantined is 1% (${KEY}). Another run changes nothing`,
  )
  expect(failure?.message).toContain(quarantinePath(KEY))
  expect(world.isWhole()).toBe(false)
  expect(world.ids()).toEqual([])
  expect(await world.rejected()).toHaveLength(200)
  const pipeline = await world.read()
  const quarantined = async () => {
    const manifest = JSON.parse(await readFile(join(world.folder, 'out/_manifest.json'), 'utf8'))
    const { html, figures } = await summaryPageIn(join(world.folder, 'out'))
    const { totals } = await readStatus(pipeline)
    const items = [totals.quarantined, manifest.totals.quarantined, Number(figures.quarantined)]
    const [, reasons = ''] = /<h2>Why items were quarantined.*?<tbody>(.*?)<\/tbody>/s.exec(html) ?? []
    return { items, reasons: [...reasons.matchAll(/<bdi>(.*?)<\/bdi>/g)].map(([, name]) => name) }
  }
  expect((await readStatus(pipeline)).totals).toMatchObject({ failed: 1, done: 0 })
  expect(await quarantined()).toEqual({ items: [200, 200, 200], reasons: ['identity_name'] })
  expect(
    (await readPlan(pipeline, await runOptions(pipeline, { env: {}, readSecret: async () => null })))
      .partitions,
  ).toMatchObject({ done: 0 })

  expect(await world.run()).toMatchObject({ ...FAILED, requests: 0, quarantined: 0 })
  expect(world.isWhole()).toBe(false)
  expect(await world.rejected()).toHaveLength(200)
  expect((await quarantined()).items).toEqual([200, 200, 200])

  // Nothing is left to request.
  expect(await world.run('max_quarantined: 100%')).toMatchObject({ ...DONE, requests: 0 })
  expect(world.isWhole()).toBe(true)
})

it('a higher limit goes on from the next cursor, and every item is exported or quarantined once', async () => {
  const world = await service([
    { good: 300, broken: 3 },
    { good: 50, broken: 50 },
    { good: 100, broken: 0 },
    { good: 10, broken: 90 },
  ])
  expect(await world.run()).toMatchObject({ ...FAILED, requests: 2, rows: 350, quarantined: 53 })
  expect(await world.run()).toMatchObject({ ...FAILED, requests: 0, rows: 0, quarantined: 0 })
  expect(await world.run('max_quarantined: 60')).toMatchObject({ ...FAILED, requests: 2, rows: 110 })
  expect(await world.run('max_quarantined: 70')).toMatchObject({ ...FAILED, requests: 0 })
  expect(await world.run('max_quarantined: 100%')).toMatchObject({ ...DONE, requests: 0 })
  expect(world.isWhole()).toBe(true)
  const [rows, rejected] = [world.ids(), await world.rejected()]
  expect([rows.length, rejected.length]).toEqual([460, 143])
  expect(new Set([...rows, ...rejected]).size).toBe(603)
  const entries = Object.values(await world.quarantine()).flat()
  for (const entry of entries) {
    expect(Object.keys(entry)).toEqual(['partition', 'page', 'index', 'id', 'issues', 'item'])
    // Each page has ten thousand ids.
    expect(entry.page).toBe(1 + Math.floor(Number(entry.id) / 10_000))
  }
  expect((await readStatus(await world.read())).totals).toMatchObject({ rows: 460, quarantined: 143 })
  expect(world.server.received).toHaveLength(4)
})

it('items that the service mends meanwhile are exported by --redo, and leave quarantine', async () => {
  const world = await service([
    { good: 300, broken: 2 },
    { good: 50, broken: 50 },
  ])
  const { failures } = await world.run()
  expect(failures[0]?.message).toContain('`run --redo` exports the partition anew')
  expect(await world.rejected()).toHaveLength(52)
  world.pages[1] = { good: 100, broken: 0 }
  expect(await world.run('', undefined, { redo: [KEY] })).toMatchObject({ ...DONE, requests: 2 })
  expect(await world.rejected()).toEqual([0, 1])
  expect(world.ids()).toHaveLength(400)
})

it('quarantine has the former items until a redo is complete, and never one of a redo that began anew', async () => {
  const world = await service([
    { good: 300, broken: 1 },
    { good: 300, broken: 0 },
  ])
  expect(await world.run()).toMatchObject({ ...DONE, quarantined: 1 })
  const onePage = 'domains: [acme.example], concurrency: 1, max_requests: 1'
  const redoOfOnePage = () => world.run('', onePage, { redo: [KEY] })
  world.pages[0] = { good: 300, broken: 2 }
  expect(await redoOfOnePage()).toMatchObject({ status: 'budget', requests: 1 })
  expect(await world.rejected()).toEqual([0])
  world.pages[0] = { good: 302, broken: 0 }
  expect(await redoOfOnePage()).toMatchObject({ status: 'budget', requests: 1 })
  expect(await world.rejected()).toEqual([0])
  expect(await world.run()).toMatchObject(DONE)
  expect(await world.rejected()).toEqual([])
})

describe('late rows of a window that failed for its quarantined items', () => {
  const WINDOWS = 'windows: { from: 2024-01-01, until: 2024-07-01, every: month, per_chain: 3 }'
  const good = (id: number, day: string) => itemAt(id, `2024-${day}T00:00:00Z`)
  const broken = (id: number, day: string) => brokenAt(id, `2024-${day}T00:00:00Z`)

  it('do not seal the shard of a folder that still gets rows', async () => {
    const first = [broken(1, '01-10'), good(2, '02-10'), good(3, '01-11'), good(4, '03-10')]
    const second = ['04-10', '04-11', '05-10', '05-11', '06-10', '06-11', '06-12']
    const server = await serviceOf([...first, ...second.map((day, i) => good(5 + i, day))], 2)
    const world = worldAt(server.url, `domains: [acme.example], concurrency: 1, ${WINDOWS}`, {
      load: 'path: out, format: csv, partition_by: [query]',
    })
    expect(await world.run('max_quarantined: 0')).toMatchObject({
      status: 'failed',
      partitions: { done: 5, failed: 1, pending: 0 },
      shards: 1,
      rows: 10,
    })
  })

  it('may make up for them: the run has failed, and the next one has nothing to do', async () => {
    const many = Array.from({ length: 100 }, (_, i) => (i < 2 ? broken(i, '01-10') : good(i, '01-10')))
    const late = Array.from({ length: 200 }, (_, i) => good(200 + i, '01-11'))
    const server = await serviceOf([...many, good(100, '02-10'), ...late], 101)
    const world = worldAt(server.url, `domains: [acme.example], concurrency: 1, ${WINDOWS}`)
    expect(await world.run()).toMatchObject({
      status: 'failed',
      partitions: { total: 6, done: 5, failed: 1, pending: 0 },
    })
    expect(await world.run()).toMatchObject({ status: 'complete', requests: 0, partitions: { done: 6 } })
  })
})
