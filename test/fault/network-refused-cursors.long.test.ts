import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { type LoggedRequest, startSandbox } from '../support/sandbox.ts'
import { credential, startService } from './hostile-service.ts'
import { expectRows, exportedIds, pipelineYaml, SMALL, serviceOf, summaryOf, world } from './network-world.ts'
import { shardPaths } from './support.ts'

// The fourth and later requests are in the middle of both chains.
const FOUR_REQUESTS = ['--max-requests', '4']

describe.concurrent.each(['asc', 'desc'])('with order %s, when a cursor is refused', (order) => {
  test('in the next run, the export resumes after the last row', async () => {
    const here = await world(SMALL, pipelineYaml({ extract: `order: ${order}` }))
    const { sandbox, run } = here
    const renewed = await startSandbox({ ...SMALL, cursorKey: 'another key', token: sandbox.token })
    await exits(4, run({}, FOUR_REQUESTS))
    const ended = await exits(0, run({ SPILLWAY_BASE_URL: renewed.baseUrl }))
    expect(ended.stderr).toContain('refuses the saved cursor')
    await expectRows(here)
    // Exported rows are not requested again, except those of the last instant.
    const again = renewed.requests.reduce((sum, { items }) => sum + items, 0)
    expect(again).toBeLessThanOrEqual(summaryOf(ended).rows + 20)
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
    const respond = serviceOf(items)
    const service = await startService((exchange) => {
      if (exchange.number === 4) exchange.json({ error: { code: 'INVALID_CURSOR', message: 'unknown' } }, 400)
      else respond(exchange)
    })
    const yaml = pipelineYaml({ domains: ['acme.example'], pageSize: 5, extract: `order: ${order}` })
    const here = await world(SMALL, yaml)
    await exits(0, here.run({ SPILLWAY_BASE_URL: service.baseUrl }))
    expect(await exportedIds(here)).toEqual(items.map(({ id }) => id))
  })
})

test('when every cursor is refused, the run ends and says so', async () => {
  const faults = [
    { kind: 'status' as const, status: 400, when: ({ body }: LoggedRequest) => hasCursor(body) },
  ]
  const here = await world({ ...SMALL, faults }, pipelineYaml())
  const ended = await exits(1, here.run())
  expect(ended.stderr).toContain('cursor')
  expect(here.sandbox.requests.length).toBeLessThan(20)
  const ids = await exportedIds(here)
  expect(new Set(ids).size).toBe(ids.length)
})

function hasCursor(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'from' in body && body.from !== null
}
