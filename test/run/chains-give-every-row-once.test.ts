import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sendJson } from '../extract/support.ts'
import { some } from '../support/thorough.ts'
import { brokenAt, type Fields, type ItemService, itemAt, serviceOf, type World, worldAt } from './world.ts'

type Order = 'asc' | 'desc'

/** Months, one at a time. */
function months(from: string, until: string, order: Order = 'asc', more = ''): string {
  const windows = `{ from: ${from}-01, until: ${until}-01, every: month }`
  return `domains: [acme.example], windows: ${windows}, order: ${order}, concurrency: 1${more}`
}
const SPRING = months('2024-01', '2024-04')
const ONE_SEARCH = months('2024-01', '2024-04', 'asc', ', max_requests: 1')

const january = (id: number, day = '10') => itemAt(id, `2024-01-${day}T00:00:00Z`)
const february = (id: number, day = '10') => itemAt(id, `2024-02-${day}T00:00:00Z`)
const march = (id: number, day = '10') => itemAt(id, `2024-03-${day}T00:00:00Z`)

async function world(
  items: readonly Fields[],
  pageSize: number,
  extract = SPRING,
): Promise<{ service: ItemService; here: World }> {
  const service = await serviceOf(items, pageSize)
  return { service, here: worldAt(service.url, extract) }
}

const folder = (month: string) => `query=domain.acme.example/import_window=${month}-01`
const inOrder = (order: Order, items: readonly Fields[]) => (order === 'asc' ? items : items.toReversed())

describe.each(some<Order>(['asc', 'desc'], 1))('rows in order, %s', (order) => {
  const extract = months('2024-01', '2024-04', order)

  it('quarantined items go to their windows, and those without a time to the current one, with their page of the chain', async () => {
    const items = [
      ...[january(1), brokenAt(2, '2024-01-20T00:00:00Z')],
      ...[brokenAt(3, 'soon'), february(4)],
      ...[brokenAt(5, '2024-03-20T00:00:00Z'), brokenAt(6, null)],
    ]
    const { here } = await world(inOrder(order, items), 2, extract)
    expect(await here.run('max_quarantined: 3')).toMatchObject({ status: 'complete', quarantined: 4 })
    const entries = Object.values(await here.quarantine()).flat()
    const found = entries.map(({ partition, page, id }) => `${partition}, page ${page}: ${id}`)
    const [jan, feb, mar] = [1, 2, 3].map((n) => `domain.acme.example/2024-0${n}-01..2024-0${n + 1}-01`)
    const expected =
      order === 'asc'
        ? [`${jan}, page 1: 2`, `${jan}, page 2: 3`, `${feb}, page 3: 6`, `${mar}, page 3: 5`]
        : [`${jan}, page 3: 2`, `${mar}, page 1: 5`, `${mar}, page 1: 6`, `${mar}, page 2: 3`]
    expect(found.sort()).toEqual(expected)
  })

  it('a window with too many quarantined items fails alone, and the next run requests only that', async () => {
    const broken = [brokenAt(11, '2024-02-11T00:00:00Z'), brokenAt(12, '2024-02-12T00:00:00Z')]
    const items = [january(1), february(2), ...broken, february(3, '13'), march(4), march(5)]
    for (const pageSize of some([1, 2, 3, 10], 2)) {
      const { service, here } = await world(inOrder(order, items), pageSize, extract)
      const summary = await here.run('max_quarantined: 1')
      expect(summary).toMatchObject({
        status: 'failed',
        partitions: { total: 3, done: 2, failed: 1, pending: 0 },
      })
      expect(summary.failures.map(({ partition }) => partition)).toEqual([
        'domain.acme.example/2024-02-01..2024-03-01',
      ])
      const before = service.received.length
      expect(await here.run('max_quarantined: 2')).toMatchObject({ status: 'complete' })
      expect(here.ids()).toEqual([1, 2, 3, 4, 5])
      const partition = 'domain.acme.example/2024-02-01..2024-03-01'
      const entries = [11, 12].map((id) => expect.objectContaining({ partition, id }))
      expect(await here.quarantine()).toEqual({
        [`${partition.replace('/', '~')}.jsonl`]: order === 'asc' ? entries : entries.toReversed(),
      })
      expect(here.isWhole()).toBe(true)
      // Only what is missing: either the whole window, or the pages that the chain had left.
      const again = service.requested().slice(before)
      expect(
        again.every((line) => line.includes('2024-02-01') || / c\d/.test(line)),
        again.join(),
      ).toBe(true)
    }
  })

  it('quarantined items before any row of their window are kept once, although the window fails', async () => {
    const broken = [brokenAt(11, '2024-02-11T00:00:00Z'), brokenAt(12, '2024-02-12T00:00:00Z')]
    const { here } = await world(inOrder(order, [january(1), ...broken, march(2)]), 1, extract)
    expect(await here.run('max_quarantined: 1')).toMatchObject({ status: 'failed' })
    expect(await here.run('max_quarantined: 2')).toMatchObject({ status: 'complete' })
    expect(await here.rejected()).toEqual([11, 12])
    expect(here.ids()).toEqual([1, 2])
  })

  it('under on_invalid: fail one invalid item fails its window; the others are exported', async () => {
    const invalid = { ...brokenAt(11, '2024-02-11T00:00:00Z'), urls: ['https://hunter2.example', 1, 2] }
    const items = [january(1), february(2), invalid, march(3)]
    const { service, here } = await world(inOrder(order, items), 10, extract)
    const summary = await here.run('on_invalid: fail')
    expect(summary).toMatchObject({
      status: 'failed',
      partitions: { total: 3, done: 2, failed: 1, pending: 0 },
      rows: 2,
    })
    // Its fields, and no value.
    expect(summary.failures[0]?.message).toContain(
      `Item ${order === 'asc' ? 3 : 2} of the response breaks the schema at identity_name, urls.1, urls.2 (domain.acme.example/2024-02-01..2024-03-01, page 1). Set`,
    )
    expect(here.ids()).toEqual([1, 3])
    expect(await here.quarantine()).toEqual({})
    service.items = service.items.filter(({ id }) => id !== 11)
    expect(await here.run('on_invalid: fail')).toMatchObject({ status: 'complete', rows: 1 })
    expect(here.ids()).toEqual([1, 2, 3])
  })

  it('a page that fails fails its window only; the next run resumes there', async () => {
    const items = [january(1), february(2), february(3, '11'), february(4, '12'), march(5), march(6)]
    const { service, here } = await world(inOrder(order, items), 2, extract)
    let failed = 0
    service.fault = ({ json }, response) => {
      if (json.from !== 'c2' || failed++ > 0) return false
      sendJson(response, {}, { status: 500 })
      return true
    }
    const summary = await here.run()
    expect(summary).toMatchObject({ status: 'failed', partitions: { total: 3, failed: 1, pending: 0 } })
    const before = service.received.length
    expect(await here.run()).toMatchObject({ status: 'complete' })
    // What was committed before the failure is not requested again.
    expect(service.requested()[before]).toContain(' c2')
    expect(here.ids()).toEqual([1, 2, 3, 4, 5, 6])
    expect(here.isWhole()).toBe(true)
  })
})

describe('rows in no order', () => {
  it('late rows open a window again, with the next part of its shard and one warning; it is counted once', async () => {
    const late = [january(4), brokenAt(5, '2024-01-20T00:00:00Z'), february(6)]
    const { here } = await world([january(1), february(2), march(3), ...late], 1)
    const warnings: string[] = []
    const onLog = (level: string, text: string) => void (level === 'warn' && warnings.push(text))
    const summary = await here.run('max_quarantined: 1', undefined, { onLog })
    expect(summary).toMatchObject({ status: 'complete', rows: 5, quarantined: 1 })
    expect(summary.partitions).toEqual({ total: 3, done: 3, failed: 0, pending: 0 })
    expect(warnings.filter((text) => text.includes('late rows'))).toHaveLength(1)
    const parts = await readdir(join(here.folder, 'out/credentials', folder('2024-01')))
    expect(parts.sort()).toEqual(['part-00000.csv', 'part-00001.csv'])
    expect(here.ids()).toEqual([1, 2, 3, 4, 6])
    expect(here.isWhole()).toBe(true)
  })

  it('are exported once if too many late items are quarantined for a window that was done', async () => {
    const late = [brokenAt(11, '2024-01-20T00:00:00Z'), brokenAt(12, '2024-01-21T00:00:00Z'), march(4)]
    const { here } = await world([january(1), february(2), march(3), ...late], 3)
    expect(await here.run('max_quarantined: 1')).toMatchObject({ status: 'failed' })
    expect(await here.run('max_quarantined: 2')).toMatchObject({ status: 'complete' })
    expect(here.ids()).toEqual([1, 2, 3, 4])
    expect(await here.rejected()).toEqual([11, 12])
  })

  it('are exported once if windows that a chain has rows of are requested without the others', async () => {
    const { here } = await world([march(1), january(2), february(3), march(4)], 2)
    expect(await here.run('', ONE_SEARCH)).toMatchObject({ status: 'budget', rows: 2 })
    expect(await here.run('', months('2024-03', '2024-04'))).toMatchObject({ status: 'complete' })
    expect(here.ids().filter((id) => id !== 2 && id !== 3)).toEqual([1, 4])
  })
})
