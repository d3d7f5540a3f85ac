import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readCsv } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { credential, type Exchange, type HostileService, startService } from './hostile-service.ts'
import {
  exportedIds,
  type PipelineParts,
  pipelineYaml,
  SMALL,
  serviceOf,
  summaryOf,
  type World,
  world,
} from './network-world.ts'
import { concurrently, diskFault, runCli } from './support.ts'

const SIZE = 10
const ITEMS = Array.from({ length: 64 }, (_, id) => credential(id))
const IDS = ITEMS.map(({ id }) => Number(id))

type Served = World & { readonly service: HostileService }

async function served(respond: (exchange: Exchange) => void, parts: PipelineParts = {}): Promise<Served> {
  const service = await startService(respond)
  const yaml = pipelineYaml({ domains: ['acme.example'], pageSize: SIZE, concurrency: 1, ...parts })
  const here = await world(SMALL, yaml)
  const run: World['run'] = (env = {}, args = []) =>
    here.run({ SPILLWAY_BASE_URL: service.baseUrl, ...env }, args)
  return { ...here, run, service }
}

async function totalsOf({ workspace }: World): Promise<unknown> {
  const args = ['status', workspace.pipeline, '--json']
  const { stdout } = await runCli({ args, cwd: workspace.folder, env: workspace.env })
  return JSON.parse(stdout).totals
}

const ONE_PAGE = ['--max-requests', '1']

describe.concurrent('rows that the service repeats are exported once and counted', () => {
  test.each([
    ['of the last two pages, in order desc', 2 * SIZE, 'desc'],
    ['of the page before, in order asc', 3, 'asc'],
  ] as const)('%s', async (_name, back, order) => {
    const here = await served(serviceOf(ITEMS, back), { extract: `order: ${order}` })
    const ended = await exits(0, here.run())
    expect(await exportedIds(here)).toEqual(IDS)
    const sent = here.service.requests.length
    const repeated = Array.from({ length: sent }, (_, page) => Math.min(back, page * SIZE)).reduce(
      (a, b) => a + b,
    )
    expect(ended.stderr.match(/service repeats rows/g)).toHaveLength(1)
    const { totals } = JSON.parse(await readFile(join(here.workspace.output, '_manifest.json'), 'utf8'))
    for (const counts of [summaryOf(ended), totals, await totalsOf(here)])
      expect(counts).toMatchObject({ rows: 64, repeated })
  })

  test('twice in one response, and of the first page of many small ones', async () => {
    const twice = [...ITEMS.slice(0, 5), ITEMS[2]!, ...ITEMS.slice(5), ITEMS[0]!]
    const here = await served(serviceOf(twice, 0))
    expect(summaryOf(await exits(0, here.run()))).toMatchObject({ rows: 64, repeated: 2 })
    expect(await exportedIds(here)).toEqual(IDS)
  })

  test('of items that broke the schema as well, and where the id is no column', async () => {
    const broken = ITEMS.map((item, i) => (i % 8 === 3 ? { ...item, identity_name: null } : item))
    const transform = 'columns: [domain, identity_name, imported_at, query_value]'
    const here = await served(serviceOf(broken, 4), { transform })
    for (let tries = 0; tries < 7; tries++) await here.run({}, ONE_PAGE)
    expect(await readCsv(here.workspace.output)).toHaveLength(56)
    const folder = join(here.workspace.output, '_quarantine')
    const [name = ''] = await readdir(folder)
    expect((await readFile(join(folder, name), 'utf8')).trimEnd().split('\n')).toHaveLength(8)
    expect(await totalsOf(here)).toMatchObject({ rows: 56, quarantined: 8, repeated: 24 })
  })

  test('when every run requests one page, and the rows are in published shards', async () => {
    const here = await served(serviceOf(ITEMS, 2 * SIZE), { load: 'shard_rows: 10' })
    for (let tries = 0; tries < 6; tries++) await exits(4, here.run({}, ONE_PAGE))
    await exits(0, here.run())
    expect(await exportedIds(here)).toEqual(IDS)
    expect(await readdir(join(here.workspace.output, '_state/log'))).toEqual([])
  })

  test('with a cursor that is refused in between', async () => {
    const respond = serviceOf(ITEMS, 13)
    const here = await served((exchange) => {
      if (exchange.number === 5) exchange.json({ error: { code: 'INVALID_CURSOR', message: 'unknown' } }, 400)
      else respond(exchange)
    })
    expect((await exits(0, here.run())).stderr).toContain('refuses the saved cursor')
    expect(await exportedIds(here)).toEqual(IDS)
  })

  test('and a chain with only repeated rows ends', async () => {
    const here = await served(({ number, json }) =>
      json({ items: ITEMS.slice(0, 5), next: `cursor-${number}` }),
    )
    const ended = await exits(1, here.run())
    expect(ended.stderr).toContain('hold only repeated rows')
    expect(here.service.requests.length).toBeLessThanOrEqual(102)
    expect(summaryOf(ended)).toMatchObject({ rows: 5 })
  })
})

test.each(['kill', 'power'])(
  '%s at any disk call, then run again: no row twice, none lost',
  async (fault) => {
    const counted = await served(serviceOf(ITEMS, 13))
    const countFile = join(counted.workspace.folder, 'calls')
    await counted.run(diskFault(counted.workspace.output, 'count', countFile))
    const calls = (await readFile(countFile, 'utf8')).split('\n').length
    expect(calls).toBeGreaterThan(40)
    const strikes = Array.from(
      { length: Math.floor(calls / 10) },
      (_, i) => 10 * i + (fault === 'kill' ? 1 : 2),
    )
    await concurrently(some(strikes, 1), async (strike) => {
      const here = await served(serviceOf(ITEMS, 13))
      await here.run(diskFault(here.workspace.output, `${fault}:${strike}`))
      const ended = await here.run()
      expect(ended.code, `${fault} at call ${strike}: ${ended.stderr}`).toBe(0)
      expect(await exportedIds(here), `${fault} at call ${strike}`).toEqual(IDS)
    })
  },
)
