import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { type LoggedRequest, startSandbox } from '../support/sandbox.ts'
import { newWorkspace, type PipelineParts, SMALL } from '../support/workspace.ts'
import { credential, idsOf, serviceOf, startService } from './hostile-service.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']
const load = { format: 'csv' }
const partsOf = (extract: PipelineParts['extract']): PipelineParts => ({
  extract: { domains: DOMAINS, page_size: 40, concurrency: 2, ...extract },
  load,
})

describe.concurrent.each(['asc', 'desc'])('with order %s, when a cursor is refused', (order) => {
  test('in the next run, the export resumes after the last row', async () => {
    const here = await newWorkspace(partsOf({ order }))
    const renewed = await startSandbox({ ...SMALL, cursorKey: 'another key', token: here.sandbox.token })
    // The fourth and later requests are in the middle of both chains.
    await exits(4, here.run('--max-requests', '4'))
    const ended = await exits(0, here.with({ SPILLWAY_BASE_URL: renewed.baseUrl }).run())
    expect(ended.stderr).toContain('refuses the saved cursor')
    await here.expectRows(DOMAINS)
    // Exported rows are not requested again, except those of the last instant.
    const again = renewed.requests.reduce((sum, { items }) => sum + items, 0)
    expect(again).toBeLessThanOrEqual(ended.summary.rows + 20)
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
    const here = await newWorkspace({ extract: { domains: ['acme.example'], page_size: 5, order }, load })
    await exits(0, here.with({ SPILLWAY_BASE_URL: service.baseUrl }).run())
    expect(idsOf(await here.rows())).toEqual(items.map(({ id }) => id))
  })
})

test('when every cursor is refused, the run ends and says so', async () => {
  const faults = [
    { kind: 'status' as const, status: 400, when: ({ body }: LoggedRequest) => hasCursor(body) },
  ]
  const here = await newWorkspace(partsOf({}), { faults })
  const ended = await exits(1, here.run())
  expect(ended.stderr).toContain('cursor')
  expect(here.sandbox.requests.length).toBeLessThan(20)
  const ids = idsOf(await here.rows())
  expect(new Set(ids).size).toBe(ids.length)
})

function hasCursor(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'from' in body && body.from !== null
}
