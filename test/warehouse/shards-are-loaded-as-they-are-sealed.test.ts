import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startSandbox } from '../../src/sandbox/index.ts'
import { newWorkspace, type PipelineParts, SMALL, type Workspace } from '../e2e/support/workspace.ts'
import { THOROUGH } from '../support/thorough.ts'
import { holdsAll, isHonest, neighbour, shardsIn } from './ledger.ts'
import { killLaterAndLater, start } from './start.ts'
import { newTarget, type TestTarget } from './targets.ts'

/** By weeks, and in small pages: shards are sealed with nearly every page. */
const parts = (service: PipelineParts['service'] = {}): PipelineParts => ({
  service,
  extract: {
    domains: ['scatterholt.com', 'quillmere.net'],
    windows: { from: '2024-01-01', until: '2024-02-05', every: 'week' },
    page_size: 10,
  },
})
const MAX_KILLS = 4

/** How a run ends, and the target that it is tested on by default. */
const ENDS = [
  { signal: 'SIGKILL', code: null, first: 'duckdb' },
  { signal: 'SIGINT', code: 130, first: 'postgres' },
] as const

// The first request is sent at once, the next one long after the test has ended.
const STANDSTILL = { requests_per_second: 0.002 }

async function begin(kind: 'duckdb' | 'postgres', service: PipelineParts['service'] = {}) {
  const here = await newWorkspace(parts(service))
  const target = await newTarget(kind, here)
  Object.assign(here.env, target.env)
  return { here, target }
}

async function runAndLoad(here: Workspace, { url }: TestTarget, ...flags: string[]) {
  const { code, stdout, stderr } = await here.cli('run', 'pipeline.yaml', '--json', '--load', url, ...flags)
  expect(code, stderr).toBe(0)
  const [, load] = stdout.trim().split('\n')
  return JSON.parse(load!)
}

async function indexesIn(target: TestTarget): Promise<number> {
  const [row] = await target.rows("select count(*) as n from pg_indexes where tablename = 'credentials'")
  return Number(row?.n)
}

describe.each(['duckdb', 'postgres'] as const)('%s', (kind) => {
  it.each(ENDS.filter((end) => THOROUGH || end.first === kind))(
    'has shards during the run; after $signal a load and the next run add the missing ones',
    async ({ signal, code }) => {
      const { here, target } = await begin(kind, STANDSTILL)
      // Leaves a manifest without the later shards.
      expect((await here.cli('run', 'pipeline.yaml', '--max-requests', '1')).code).toBe(4)
      const run = start(here, 'run', 'pipeline.yaml', '--load', target.url)
      // The run is still waiting for its second request.
      while ((await shardsIn(target)) === 0) await wait(100)
      expect(here.searches()).toHaveLength(2)
      run.kill(signal)
      const ended = await run.ended
      expect(ended.code, ended.stderr).toBe(code)
      await isHonest(target)
      const ahead = await shardsIn(target)
      if (kind === 'postgres') expect(await indexesIn(target)).toBe(0)
      const load = await here.cli('load', 'pipeline.yaml', '--to', target.url, '--json')
      expect(JSON.parse(load.stdout).shards).toMatchObject({ skipped: ahead, replaced: 0 })
      if (kind === 'postgres') expect(await indexesIn(target)).toBe(4)
      const before = await shardsIn(target)
      await here.write(parts())
      const { shards } = await runAndLoad(here, target)
      const all = (await here.manifest()).shards.length
      expect(shards).toEqual({ loaded: all - before, skipped: before, replaced: 0 })
      await holdsAll(here, target)
    },
  )

  // By default one kill of a run, above, and those of `load` in `loads-survive`.
  it.runIf(THOROUGH)('holds no partial shard and no shard twice, whenever runs are killed', async () => {
    const { here, target } = await begin(kind)
    const neighbourIsUnchanged = await neighbour(here, target)
    const words = ['run', 'pipeline.yaml', '--load', target.url]
    const delays = { firstMs: 400, stepMs: 60 }
    expect(await killLaterAndLater(here, words, delays, MAX_KILLS, () => isHonest(target))).toBeGreaterThan(0)
    await runAndLoad(here, target)
    await holdsAll(here, target)
    await neighbourIsUnchanged()
  })

  it.runIf(THOROUGH || kind === 'duckdb')(
    'while another load holds it the run continues to its end, and the load waits',
    async () => {
      const { here, target } = await begin(kind)
      const release = await target.hold()
      const run = start(here, 'run', 'pipeline.yaml', '--json', '--load', target.url)
      await run.says(/"status":"complete"/)
      await run.says(/(?:another load|process \d+ \(\S+\)) uses the target/)
      await run.says(/waiting for it to end/)
      await release()
      const { code, stdout, stderr } = await run.ended
      expect(code, stderr).toBe(0)
      const { shards, totals } = await here.manifest()
      expect(JSON.parse(stdout.split('\n')[1]!)).toMatchObject({
        shards: { loaded: shards.length, skipped: 0, replaced: 0 },
        rows: totals.rows,
      })
      await holdsAll(here, target)
    },
  )
})

it('rows of a partition that is exported again replace its former rows', async () => {
  const { here, target } = await begin('duckdb')
  const neighbourIsUnchanged = await neighbour(here, target)
  const first = await runAndLoad(here, target)
  const later = await startSandbox({ ...SMALL, seed: 'later' })
  onTestFinished(() => later.close())
  Object.assign(here.env, { SPILLWAY_BASE_URL: later.baseUrl, SPILLWAY_TOKEN: later.token })
  const { shards } = await runAndLoad(here, target, '--redo', 'domain.quillmere.net/*')
  expect(shards.replaced).toBeGreaterThan(0)
  expect(shards.skipped).toBe(
    (await here.manifest()).shards.filter(({ path }) => path.includes('scatterholt')).length,
  )
  expect(first.shards.loaded).toBeGreaterThan(shards.skipped)
  await holdsAll(here, target)
  await isHonest(target)
  await neighbourIsUnchanged()
})

it('rows that the ledger does not list are not doubled during the run: no more shards are loaded, with a warning', async () => {
  const { here, target } = await begin('duckdb')
  await runAndLoad(here, target)
  const [before] = await target.rows('select count(*) as n from credentials')
  await target.change('drop table spillway_loads cascade')
  const { extract } = parts()
  // More weeks, the first of which are sealed with the first page.
  const windows = { from: '2024-01-01', until: '2024-06-02', every: 'week' }
  await here.write({ service: STANDSTILL, extract: { ...extract, windows } })
  const run = start(here, 'run', 'pipeline.yaml', '--load', target.url)
  await run.says(/no more shards are loaded during the run.*spillway_loads does not list/)
  run.kill('SIGKILL')
  await run.ended
  expect(await target.rows('select count(*) as n from credentials')).toEqual([before])
  expect((await here.cli('load', 'pipeline.yaml', '--to', target.url)).code).toBe(2)
})

it('an unreachable database does not stop the run: a warning, and at the end exit 1', async () => {
  const { here, target } = await begin('postgres')
  const nowhere = target.url.replace(/:\d+\//, ':1/')
  const { code, stdout, stderr } = await here.cli('run', 'pipeline.yaml', '--json', '--load', nowhere)
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ status: 'complete' })
  expect(stderr.match(/no more shards are loaded during the run/g)).toHaveLength(1)
  expect(stderr).toMatch(/^spillway: PostgreSQL cannot be reached/m)
  expect((await here.manifest()).shards.length).toBeGreaterThan(0)
  await runAndLoad(here, target)
  await holdsAll(here, target)
})
