import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { quarantineOf } from '../support/quarantine.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import type { PipelineParts } from '../support/workspace.ts'
import { startAttack } from './hostile-run.ts'
import { credential, type Exchange, idsOf, serviceOf } from './hostile-service.ts'
import { concurrently, diskFault } from './support.ts'

const SIZE = 10
const ITEMS = Array.from({ length: 64 }, (_, id) => credential(id))
const IDS = ITEMS.map(({ id }) => Number(id))

function served(respond: (exchange: Exchange) => void, parts: PipelineParts = {}) {
  return startAttack(respond, { ...parts, extract: { page_size: SIZE, concurrency: 1, ...parts.extract } })
}

const ONE_PAGE = ['--max-requests', '1']

describe.concurrent('rows that the service repeats are exported once and counted', () => {
  test.each([
    ['of the last two pages, in order desc', 2 * SIZE, 'desc'],
    ['of the page before, in order asc', 3, 'asc'],
  ] as const)('%s', async (_name, back, order) => {
    const here = await served(serviceOf(ITEMS, back), { extract: { order } })
    const ended = await exits(0, here.run())
    expect(idsOf(await here.rows())).toEqual(IDS)
    const sent = here.service.requests.length
    const repeated = Array.from({ length: sent }, (_, page) => Math.min(back, page * SIZE)).reduce(
      (a, b) => a + b,
    )
    expect(ended.stderr.match(/service repeats rows/g)).toHaveLength(1)
    const totals = { rows: 64, repeated }
    expect(ended.summary).toMatchObject(totals)
    expect((await here.manifest()).totals).toMatchObject(totals)
    expect((await here.json('status')).value).toMatchObject({ totals })
  })

  test('of items that broke the schema as well, and where the id is no column', async () => {
    const broken = ITEMS.map((item, i) => (i % 8 === 3 ? { ...item, identity_name: null } : item))
    const columns = ['domain', 'identity_name', 'imported_at', 'query_value']
    const here = await served(serviceOf(broken, 4), { transform: { columns } })
    for (let tries = 0; tries < 7; tries++) await here.run(...ONE_PAGE)
    expect(await here.rows()).toHaveLength(56)
    expect(await quarantineOf(here.output)).toHaveLength(8)
    const totals = { rows: 56, quarantined: 8, repeated: 24 }
    expect((await here.json('status')).value).toMatchObject({ totals })
  })

  test('and a chain with only repeated rows ends', async () => {
    const here = await served(({ number, json }) =>
      json({ items: ITEMS.slice(0, 5), next: `cursor-${number}` }),
    )
    const ended = await exits(1, here.run())
    expect(ended.stderr).toContain('hold only repeated rows')
    expect(here.service.requests.length).toBeLessThanOrEqual(102)
    expect(ended.summary).toMatchObject({ rows: 5 })
  })
})

test.each(['kill', 'power'])(
  '%s at any disk call, then run again: no row twice, none lost',
  async (fault) => {
    const counted = await served(serviceOf(ITEMS, 13))
    const countFile = join(counted.folder, 'calls')
    await counted.with(diskFault(counted.output, 'count', countFile)).run()
    const calls = (await readFile(countFile, 'utf8')).split('\n').length
    expect(calls).toBeGreaterThan(40)
    const strikes = Array.from(
      { length: Math.floor(calls / 10) },
      (_, i) => 10 * i + (fault === 'kill' ? 1 : 2),
    )
    await concurrently(some(strikes, 1), async (strike) => {
      const here = await served(serviceOf(ITEMS, 13))
      await here.with(diskFault(here.output, `${fault}:${strike}`)).run()
      const ended = await here.run()
      expect(ended.code, `${fault} at call ${strike}: ${ended.stderr}`).toBe(0)
      expect(idsOf(await here.rows()), `${fault} at call ${strike}`).toEqual(IDS)
    })
  },
)
