import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { planShape, statusShape } from '../support/json-shapes.ts'
import { exits, jsonLines } from '../support/run-cli.ts'
import { PIPELINE } from '../support/workspace.ts'
import { ONE_SLOT, THREE_MONTHS, trial } from './trial.ts'

const ESCAPE = /\x1b/

/** All that a run without a terminal prints within its first half minute. */
const PLANNED = /^trial: 3 of 3 partitions to do, pace: [^\n]*\n$/

it('--json prints the summary, and a second run sends nothing', async () => {
  const { sandbox, output, run, searches } = await trial()
  const first = await run()
  expect(first).toMatchObject({ code: 0, stderr: expect.stringMatching(PLANNED) })
  expect(first.summary.rows).toBeGreaterThan(0)
  expect(JSON.parse(first.stdout)).toMatchObject({
    ...{ pipeline: 'trial', status: 'complete', partitions: { total: 3, done: 3, failed: 0, pending: 0 } },
    ...{ shards: 3, requests: 1, retries: 0, quarantined: 0, repeated: 0, service: { page_size: 10_000 } },
    ...{ manifest: join(output, '_manifest.json'), error: null, failures: [] },
  })
  expect(existsSync(join(output, '_SUCCESS'))).toBe(true)

  const second = await exits(0, run())
  expect(second.summary).toMatchObject({ status: 'complete', rows: 0, shards: 0, requests: 0 })
  expect(searches()).toHaveLength(1)
  // One for each of the tests of the token.
  expect(sandbox.requests).toHaveLength(2)
})

it('without a terminal --fresh needs --yes; the summary has no colours, and names the next command', async () => {
  const { call, run } = await trial()
  await exits(0, run())
  const refused = await exits(2, run('--fresh'), '--yes')
  expect(refused.stdout).toMatch(/^\{"error":/)
  const { stdout } = await exits(0, call('run', '--fresh', '--yes'), PLANNED)
  expect(stdout).not.toMatch(ESCAPE)
  expect(stdout).toMatch(/^trial: complete in /)
  expect(stdout).toContain('3 of 3 done')
  expect(stdout).toContain('out/_manifest.json')
  expect(stdout).toMatch(/^ {2}searches spent {2}1$/m)
  expect(stdout).toContain('verify pipeline.yaml')
  expect(stdout).toContain('query pipeline.yaml "SELECT count(*) FROM credentials"')
})

it('plan, status, verify and check agree', async () => {
  const here = await trial({ extract: { ...ONE_SLOT, max_requests: 4 } })
  const { sandbox, call, searches } = here
  const json = async (command: string) => (await exits(0, here.json(command))).value
  expect(planShape.parse(await json('plan'))).toMatchObject({
    partitions: { total: 3, done: 0, partial: 0, pending: 3 },
    ...{ min_requests: 1, min_seconds: 0.001, expected_requests: null, expected_seconds: null },
  })
  expect(sandbox.requests).toHaveLength(0)
  expect((await call('run')).code).toBe(4)
  expect(await json('plan')).toMatchObject({
    partitions: { done: 2, partial: 1, pending: 0 },
    min_requests: 1,
    expected_requests: expect.any(Number),
  })

  const status = await json('status')
  expect(status).toMatchObject({
    pipeline: 'trial',
    totals: { partitions: 3, done: 2, requests: 4, shards: 2, searches_spent: 4 },
    service: { page_size: 2 },
  })
  expect(status.partitions).toHaveLength(3)
  const rows = status.partitions.reduce((sum: number, each: { rows: number }) => sum + each.rows, 0)
  expect(status.totals).toMatchObject({ partial: 1, failed: 0, pending: 0, rows })
  expect(statusShape.parse(status).partitions[0]).toMatchObject({
    key: 'domain.scatterholt.com/2024-01-01..2024-02-01',
    window: { from: '2024-01-01T00:00:00Z', until: '2024-02-01T00:00:00Z' },
    ...{ query: 'domain.scatterholt.com', state: 'done', next: null, error: null },
  })
  expect(await json('verify')).toMatchObject({ ok: true, shards: 2, problems: [] })
  const checked = await call('check')
  expect(checked).toMatchObject({ code: 0, stderr: '' })
  expect(checked.stdout).toContain('2 done')
  expect(searches()).toHaveLength(4)
})

it('a long listing ends without an error when its reader closes the pipe', async () => {
  const { start } = await trial({ extract: { windows: { ...THREE_MONTHS, from: '1800-01-01' } } })
  const running = start('status', PIPELINE, '--json')
  // Two hundred years of months are more than a pipe holds.
  running.child.stdout.destroy()
  expect(await running.result).toMatchObject({ stderr: '', code: 0 })
})

const JSON_LOG = ['--log-format', 'json']

it('a run logs its events as JSON, each line with the run id', async () => {
  const faults = [
    { kind: 'status', status: 503, requests: [2] },
    { kind: 'status', status: 429, retryAfter: '0', requests: [4] },
    { kind: 'status', status: 400, code: 'NO_WAY', requests: [7] },
  ] as const
  const windows = { ...THREE_MONTHS, per_chain: 1 }
  const { sandbox, call } = await trial({ extract: { ...ONE_SLOT, windows } }, { faults })
  const { stderr } = await exits(1, call('run', ...JSON_LOG, '--log-level', 'debug'))
  const lines = jsonLines(stderr)
  expect(new Set(lines.map(({ run }) => run)).size).toBe(1)
  for (const line of lines) {
    expect(line).toMatchObject({
      ...{ level: expect.any(String), event: expect.any(String), msg: expect.any(String), pipeline: 'trial' },
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      run: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  }
  const of = (event: string) => lines.filter((line) => line.event === event)
  expect(lines[0]).toMatchObject({ event: 'request' })
  expect(of('run.start')).toMatchObject([{ partitions_total: 3, partitions_done: 0 }])
  expect(lines.at(-1)).toMatchObject({
    ...{ event: 'run.finish', status: 'failed', retries: 2, error_kind: null },
    ...{ partitions_done: 2, partitions_failed: 1, partitions_pending: 0 },
  })
  expect(of('retry')).toMatchObject([
    { retry: 1, of: 8, wait_ms: expect.any(Number), reason: expect.stringContaining('503') },
    { retry: 1, of: 8, wait_ms: 0, reason: expect.stringContaining('429') },
  ])
  expect(of('wait')).toMatchObject([{ for: 'pause', wait_ms: 1000 }])
  expect(of('partition.failed')).toMatchObject([{ level: 'error', kind: 'refused', requests: 1 }])

  // Whatever ended had begun before.
  const begun = of('partition.start').map(({ partition }) => partition)
  const ended = [...of('partition.done'), ...of('partition.failed')].map(({ partition }) => partition)
  expect([...ended].sort()).toEqual([...begun].sort())
  for (const { partition } of of('partition.done')) {
    const [first, last] = lines.flatMap((line, i) => (line.partition === partition ? [i] : []))
    expect([lines[first!]!.event, lines[last!]!.event]).toEqual(['partition.start', 'partition.done'])
  }
  const rows = of('partition.done').reduce((sum, line) => sum + Number(line.rows), 0)
  expect(lines.at(-1)!.rows).toBe(rows)
  expect(of('shard.published').map(({ path }) => path)).toEqual(of('shard.sealed').map(({ path }) => path))

  const requests = of('request')
  expect(requests).toHaveLength(sandbox.requests.length)
  expect(requests.map(({ status }) => status)).toEqual(expect.arrayContaining([200, 503, 429, 400]))
  expect(requests[0]).toMatchObject({ request: 'token test', method: 'GET', path: '/tokens/test' })
  expect(requests[1]).toMatchObject({
    ...{ level: 'debug', request: 'domain.scatterholt.com/2024-01-01..2024-02-01, page 1', method: 'POST' },
    path: '/firework/v4/credentials/global/_search',
    ...{ attempt: 1, status: 200, duration_ms: expect.any(Number) },
  })
  expect(requests.find(({ attempt }) => attempt === 2)).toMatchObject({ request: requests[2]!.request })
})

it('stderr is JSON to the last line, also after a signal or a wrong command line', async () => {
  const slow = { service: { requests_per_second: 0.01 }, extract: { page_size: 2 } }
  const { sandbox, cli, start } = await trial(slow)
  const running = start('run', PIPELINE, ...JSON_LOG)
  await running.until(() => sandbox.requests.length > 0)
  running.child.kill('SIGTERM')
  const { code, stderr } = await running.result
  expect(code).toBe(143)
  const lines = jsonLines(stderr)
  expect(lines.map(({ event }) => event)).toEqual(expect.arrayContaining(['run.start', 'stop', 'run.finish']))
  expect(lines.find(({ event }) => event === 'stop')).toMatchObject({ signal: 'SIGTERM' })
  const said = 'Stopping after the work in progress. Another signal ends it at once; nothing is lost.'
  const messages = lines.map(({ msg }) => msg)
  expect(messages).toContain(said)
  expect(messages.indexOf(said)).toBeLessThan(messages.indexOf('run finished'))

  for (const args of [
    ['run', PIPELINE, '--max-requests', 'x', ...JSON_LOG],
    ['run', 'nowhere.yaml', ...JSON_LOG],
  ]) {
    const wrong = await exits(2, cli(...args))
    expect(jsonLines(wrong.stderr)).toMatchObject([{ event: 'error', kind: 'config', level: 'error' }])
  }
})

it('stderr for people omits machine events', async () => {
  const { call } = await trial()
  expect(await call('run', '--no-progress')).toMatchObject({ code: 0, stderr: '' })
  const debug = await call('run', '--fresh', '--yes', '--log-level', 'debug')
  expect(debug.stderr).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: run started /m)
})
