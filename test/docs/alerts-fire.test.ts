import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import type { SandboxOptions } from '../support/sandbox.ts'
import { newWorkspace, PIPELINE, type Workspace } from '../support/workspace.ts'
import { firing, RULES, unknownTo } from './alert-rules.ts'
import { ROOT } from './page.ts'

const HOUR_MS = 3_600_000
const windows = { from: '2024-01-01', until: '2024-04-01', every: 'month', per_chain: 1 }

async function world(options: SandboxOptions = {}) {
  const extract = { domains: ['scatterholt.com'], windows, page_size: 2, concurrency: 1 }
  const here = await newWorkspace({ extract }, { records: 40, ...options })
  const path = join(here.folder, 'spillway.prom')
  const run = (of: Workspace, ...flags: string[]) => of.call('run', '--metrics-file', path, ...flags)
  return { here, run, path, metrics: () => readFileSync(path, 'utf8') }
}

it('no alert fires on a complete export, or one that a budget stops; two days later it is overdue', async () => {
  const { here, run, metrics } = await world()
  await exits(4, run(here, '--max-requests', '1'))
  expect(firing(metrics())).toEqual([])
  await exits(0, run(here))
  expect(unknownTo(metrics())).toEqual([])
  expect(firing(metrics())).toEqual([])
  expect(firing(metrics(), Date.now() + 47 * HOUR_MS)).toEqual([])
  expect(firing(metrics(), Date.now() + 49 * HOUR_MS)).toEqual(['SpillwayOverdue'])
})

it('refused credentials and a wrong file, a failed partition, and damage each have their alert', async () => {
  const { here, run, metrics } = await world({ faults: [{ kind: 'status', status: 400, requests: [2] }] })
  await exits(3, run(here.with({ SPILLWAY_TOKEN: 'not-the-token' })))
  expect(firing(metrics())).toEqual(['SpillwayNeedsSomebody'])
  await exits(1, run(here))
  expect(firing(metrics())).toEqual(['SpillwayFailed'])
  await exits(0, run(here))
  await exits(2, run(here, '--format', 'csv'))
  expect(firing(metrics())).toEqual(['SpillwayNeedsSomebody'])
  rmSync(join(here.output, (await shardPaths(here.output))[0]!))
  await exits(1, run(here))
  expect(firing(metrics())).toEqual(['SpillwayDamaged', 'SpillwayFailed'])
})

it('a run that is killed is missed after half an hour, not before', async () => {
  const { here, path, metrics } = await world({ faults: [{ kind: 'hang', requests: [2] }] })
  const running = here.start('run', PIPELINE, '--metrics-file', path)
  await running.until(() => here.sandbox.requests.length > 1)
  expect(firing(metrics())).toEqual([])
  running.child.kill('SIGKILL')
  await running.result
  expect(firing(metrics(), Date.now() + 0.4 * HOUR_MS)).toEqual([])
  expect(firing(metrics(), Date.now() + 0.6 * HOUR_MS)).toEqual(['SpillwayRunVanished'])
})

it('a quota that is nearly used up', async () => {
  const { here, run, metrics } = await world({ quota: 900 })
  await exits(0, run(here))
  expect(firing(metrics())).toEqual(['SpillwayQuotaLow'])
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0

it.skipIf(!hasPromtool)('promtool accepts the rules', () => {
  const { status, stdout, stderr } = spawnSync(
    'promtool',
    ['check', 'rules', join(ROOT, 'docs/schedules/alerts.yaml')],
    { encoding: 'utf8' },
  )
  expect(status, stderr).toBe(0)
  expect(stdout).toContain(`${RULES.length} rules found`)
})
