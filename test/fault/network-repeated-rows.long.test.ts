import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { change, flipped } from './damage.ts'
import { credential, type Exchange, type HostileService, type Item, startService } from './hostile-service.ts'
import { exportedRows, pipelineYaml, SMALL, summaryOf, type World, world } from './network-world.ts'
import { concurrently, diskFault } from './support.ts'

const SIZE = 10
const ITEMS = Array.from({ length: 64 }, (_, id) => credential(id))
const IDS = ITEMS.map(({ id }) => Number(id))

/** Each page begins `back` items before the index that its cursor names. */
function overlapping(back: number, items: readonly Item[] = ITEMS): (exchange: Exchange) => void {
  return ({ body, json }) => {
    const { gte = '0', lte = '9' } = body.filters?.imported_at ?? {}
    const found = items.filter(({ imported_at }) => {
      const at = new Date(String(imported_at)).getTime()
      return (gte === '0' || at >= Date.parse(gte)) && (lte === '9' || at <= Date.parse(lte))
    })
    if (body.order === 'desc') found.reverse()
    const start = Number(String(body.from ?? '0').split('~')[0])
    const end = start + body.size
    json({
      items: found.slice(Math.max(0, start - back), end),
      next: end < found.length ? `${end}~${gte}` : null,
    })
  }
}

async function withService<T>(
  respond: (exchange: Exchange) => void,
  yaml: string,
  work: (context: World & { service: HostileService }) => Promise<T>,
): Promise<T> {
  const service = await startService(respond)
  const here = await world(SMALL, yaml)
  const run: World['run'] = (env = {}, args = []) =>
    here.run({ SPILLWAY_BASE_URL: service.baseUrl, ...env }, args)
  return await work({ ...here, run, service })
}

const YAML = (extract = '', load = ''): string =>
  pipelineYaml({ domains: ['acme.example'], pageSize: SIZE, concurrency: 1, extract, load })

async function ids(world: World): Promise<readonly number[]> {
  return (await exportedRows(world.workspace.output))
    .map((row) => Number(row.split(' ')[1]))
    .sort((a, b) => a - b)
}

async function statusOf(here: World): Promise<{ totals: Record<string, number> }> {
  const { runCli } = await import('./support.ts')
  const { workspace } = here
  const args = ['status', workspace.pipeline, '--json']
  const { stdout } = await runCli({ args, cwd: workspace.folder, env: workspace.env })
  return JSON.parse(stdout)
}

const isSaid = /service repeats rows/g

describe.concurrent('rows that the service repeats are exported once and counted', () => {
  const overlaps = [
    ['of the last two pages, in order desc', 2 * SIZE, 'desc'],
    ['of the page before, in order asc', 3, 'asc'],
  ] as const
  test.each(some(overlaps, 1))('%s', async (_name, back, order) => {
    await withService(overlapping(back), YAML(`order: ${order}`), async (here) => {
      const ended = await exits(0, here.run())
      expect(await ids(here)).toEqual(IDS)
      const sent = here.service.requests.length
      const repeated = Array.from({ length: sent }, (_, page) => Math.min(back, page * SIZE)).reduce(
        (a, b) => a + b,
      )
      expect(summaryOf(ended)).toMatchObject({ rows: 64, repeated })
      expect(ended.stderr.match(isSaid)).toHaveLength(1)
      const { totals } = JSON.parse(await readFile(join(here.workspace.output, '_manifest.json'), 'utf8'))
      expect(totals).toMatchObject({ rows: 64, repeated })
      expect((await statusOf(here)).totals).toMatchObject({ rows: 64, repeated })
    })
  })

  test('twice in one response, and of the first page of many small ones', async () => {
    const twice = [...ITEMS.slice(0, 5), ITEMS[2]!, ...ITEMS.slice(5), ITEMS[0]!]
    await withService(overlapping(0, twice), YAML(), async (here) => {
      const ended = await exits(0, here.run())
      expect(await ids(here)).toEqual(IDS)
      expect(summaryOf(ended)).toMatchObject({ rows: 64, repeated: 2 })
    })
  })

  test.runIf(THOROUGH)('of items that broke the schema as well, and where the id is no column', async () => {
    const broken = ITEMS.map((item, i) => (i % 8 === 3 ? { ...item, identity_name: null } : item))
    const yaml = `${YAML()}`.replace(
      'transform: { ',
      'transform: { columns: [domain, identity_name, imported_at, query_value], ',
    )
    await withService(overlapping(4, broken), yaml, async (here) => {
      for (let tries = 0; tries < 7; tries++) await here.run({}, ['--max-requests', '1'])
      expect(await exportedRows(here.workspace.output)).toHaveLength(56)
      expect(await quarantinedIndexes(here)).toHaveLength(8)
      expect((await statusOf(here)).totals).toMatchObject({ rows: 56, quarantined: 8, repeated: 24 })
    })
  })

  test.runIf(THOROUGH)('when every run requests one page, and the rows are in published shards', async () => {
    await withService(overlapping(2 * SIZE), YAML('', 'shard_rows: 10'), async (here) => {
      for (let tries = 0; tries < 6; tries++) {
        await exits(4, here.run({}, ['--max-requests', '1']))
      }
      await exits(0, here.run())
      expect(await ids(here)).toEqual(IDS)
      expect(await readdir(join(here.workspace.output, '_state/log'))).toEqual([])
    })
  })

  test.runIf(THOROUGH)('with a cursor that is refused in between', async () => {
    const respond = overlapping(13)
    const refusing = (exchange: Exchange): void => {
      if (exchange.number === 5) exchange.json({ error: { code: 'INVALID_CURSOR', message: 'unknown' } }, 400)
      else respond(exchange)
    }
    await withService(refusing, YAML(), async (here) => {
      const ended = await exits(0, here.run())
      expect(ended.stderr).toContain('refuses the saved cursor')
      expect(await ids(here)).toEqual(IDS)
    })
  })

  test.runIf(THOROUGH)('and a chain with only repeated rows ends', async () => {
    const forEver = ({ number, json }: Exchange): void =>
      json({ items: ITEMS.slice(0, 5), next: `cursor-${number}` })
    await withService(forEver, YAML(), async (here) => {
      const ended = await exits(1, here.run())
      expect(ended.stderr).toContain('hold only repeated rows')
      expect(here.service.requests.length).toBeLessThanOrEqual(102)
      expect(summaryOf(ended)).toMatchObject({ rows: 5 })
    })
  })
})

test('damaged or missing ids are noticed, and the chain resumes after its last row', async () => {
  // Each page fills its shards, so that the log holds ids alone.
  await withService(overlapping(13), YAML('', 'shard_rows: 1'), async (here) => {
    const state = join(here.workspace.output, '_state')
    let isDamaged = false
    for (const damage of ['gone', 'cut', 'flipped', 'none'] as const) {
      const ended = await exits(4, here.run({}, ['--max-requests', '1']))
      expect(ended.stderr.includes('ids of the last pages are damaged or missing')).toBe(isDamaged)
      isDamaged = damage !== 'none'
      const chain = (await readFile(join(state, 'checkpoint.jsonl'), 'utf8'))
        .split('\n')
        .find((line) => line.startsWith('{"kind":"chain"'))
      const [sequence, offset, length] = JSON.parse(chain!).state.ids.at(-1)
      const path = join(state, 'log', String(sequence).padStart(16, '0'))
      if (damage === 'gone') await rm(path)
      else if (damage === 'cut') await change(path, (bytes) => bytes.subarray(0, offset + length - 4))
      else if (damage === 'flipped') await change(path, (bytes) => flipped(bytes, offset + 9))
    }
    await exits(0, here.run())
    expect(await ids(here)).toEqual(IDS)
  })
})

test.each(some(['kill', 'power'], 1))(
  '%s at any disk call, then run again: no row twice, none lost',
  async (fault) => {
    const calls = await withService(overlapping(13), YAML(), async (here) => {
      const countFile = join(here.workspace.folder, 'calls')
      await here.run(diskFault(here.workspace.output, 'count', countFile))
      return (await readFile(countFile, 'utf8')).split('\n').length
    })
    expect(calls).toBeGreaterThan(40)
    const strikes = Array.from(
      { length: Math.floor(calls / 10) },
      (_, i) => 10 * i + (fault === 'kill' ? 1 : 2),
    )
    await concurrently(some(strikes, 1), async (strike) => {
      await withService(overlapping(13), YAML(), async (here) => {
        await here.run(diskFault(here.workspace.output, `${fault}:${strike}`))
        const ended = await here.run()
        expect(ended.code, `${fault} at call ${strike}: ${ended.stderr}`).toBe(0)
        expect(await ids(here), `${fault} at call ${strike}`).toEqual(IDS)
      })
    })
  },
)

async function quarantinedIndexes({ workspace }: World): Promise<readonly number[]> {
  const folder = join(workspace.output, '_quarantine')
  const [name] = await readdir(folder)
  const lines = (await readFile(join(folder, name!), 'utf8')).trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line).id)
}
