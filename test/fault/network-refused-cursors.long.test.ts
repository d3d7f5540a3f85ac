import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { startSandbox } from '../support/sandbox.ts'
import { credential, type Item, startService } from './hostile-service.ts'
import { expectedRows, exportedRows, pipelineYaml, SMALL, summaryOf, world } from './network-world.ts'
import { shardPaths } from './support.ts'

// The fourth and later requests are in the middle of both chains.
const FOUR_REQUESTS = ['--max-requests', '4']

describe.concurrent.each(['asc', 'desc'])('with order %s, when a cursor is refused', (order) => {
  test('in the next run, the export resumes after the last row', async () => {
    const { sandbox, workspace, run } = await world(SMALL, pipelineYaml({ extract: `order: ${order}` }))
    const renewed = await startSandbox({ ...SMALL, cursorKey: 'another key', token: sandbox.token })
    const stopped = await exits(4, run({}, FOUR_REQUESTS))
    const ended = await exits(0, run({ SPILLWAY_BASE_URL: renewed.baseUrl }))
    expect(ended.stderr).toContain('refuses the saved cursor')
    expect(await exportedRows(workspace.output)).toEqual(expectedRows(sandbox))
    // Exported rows are not requested again, except those of the last instant.
    const again = renewed.requests.reduce((sum, { items }) => sum + items, 0)
    expect(again).toBeLessThanOrEqual(expectedRows(sandbox).length - summaryOf(stopped).rows + 20)
  })

  test('after pages out of order, it does not resume at a position that would skip rows', async () => {
    // Each page is in order, but the second one begins before the first ends. The order of the third does not help.
    const seconds = order === 'asc' ? [3, 4, 1, 2, 5, 6] : [4, 3, 6, 5, 2, 1]
    const items = seconds.map((second, id) =>
      credential(id, { imported_at: new Date(Date.UTC(2024, 0, 1) + second * 1000).toISOString() }),
    )
    const service = await startService((exchange) => {
      const start = Number(exchange.body.from ?? 0)
      if (start === 6) exchange.json({ error: { code: 'INVALID_CURSOR', message: 'unknown' } }, 400)
      else exchange.json({ items: items.slice(start, start + 2), next: String(start + 2) })
    })
    const { workspace, run } = await world(
      SMALL,
      pipelineYaml({ domains: ['acme.example'], pageSize: 2, extract: `order: ${order}` }),
    )
    const ended = await exits(1, run({ SPILLWAY_BASE_URL: service.baseUrl }))
    expect(ended.stderr).toContain('there is no safe resume position')
    expect(service.requests).toHaveLength(4)
    // Committed pages stay.
    expect(summaryOf(ended).rows).toBe(6)
    expect(await shardPaths(workspace.output)).toEqual([])
  })

  test.each([
    ['many rows share the instant at the page boundary', (id: number) => Math.floor(id / 7)],
    ['every row shares one instant', () => 3],
    ['every row has an instant of its own', (id: number) => id],
  ])('and %s, no row is lost and none comes twice', async (_name, second) => {
    const items = Array.from({ length: 23 }, (_, id) =>
      credential(id, { imported_at: new Date(Date.UTC(2024, 0, 1) + second(id) * 1000).toISOString() }),
    )
    // The fourth request is refused, and with it the cursor saved after three pages.
    const service = await startService((exchange) => {
      const { from = null } = exchange.body
      if (exchange.number === 4) exchange.json({ error: { code: 'INVALID_CURSOR', message: 'unknown' } }, 400)
      else exchange.json(page(items, exchange.body, from))
    })
    const { workspace, run } = await world(
      SMALL,
      pipelineYaml({ domains: ['acme.example'], pageSize: 5, extract: `order: ${order}` }),
    )
    await exits(0, run({ SPILLWAY_BASE_URL: service.baseUrl }))
    const ids = (await exportedRows(workspace.output)).map((row) => Number(row.split(' ')[1]))
    expect(ids.sort((a, b) => a - b)).toEqual(items.map(({ id }) => id))
  })
})

test('when every cursor is refused, the run ends and says so', async () => {
  const { sandbox, workspace, run } = await world(
    { ...SMALL, faults: [{ kind: 'status', status: 400, when: ({ body }) => hasCursor(body) }] },
    pipelineYaml(),
  )
  const ended = await exits(1, run())
  expect(ended.stderr).toContain('cursor')
  expect(sandbox.requests.length).toBeLessThan(20)
  expect(new Set(await exportedRows(workspace.output)).size).toBe(
    (await exportedRows(workspace.output)).length,
  )
})

function hasCursor(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'from' in body && body.from !== null
}

type SearchBody = {
  readonly size: number
  readonly order: string
  readonly filters?: { readonly imported_at?: { readonly gte?: string; readonly lte?: string } }
}

/** A page of the items that match the filters. The cursor holds an index in those. */
function page(items: readonly Item[], { size, order, filters }: SearchBody, from: string | null) {
  const { gte = '0', lte = '9' } = filters?.imported_at ?? {}
  const at = (item: Item): string => String(item.imported_at)
  const found = items.filter((item) => at(item) >= iso(gte) && at(item) <= iso(lte))
  if (order === 'desc') found.reverse()
  const start = Number(from?.split('~').at(-1) ?? 0)
  const end = start + size
  // The cursor names its range, so it is valid only there.
  return { items: found.slice(start, end), next: end < found.length ? `${gte}~${lte}~${end}` : null }
}

/** With milliseconds, as the items have them, so that the strings can be compared. */
function iso(time: string): string {
  return time.length > 1 ? new Date(time).toISOString() : time
}
