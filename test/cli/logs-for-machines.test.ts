import { expect, it } from 'vitest'
import { exits, jsonLines } from '../support/run-cli.ts'
import { PIPELINE } from '../support/workspace.ts'
import { ONE_SLOT, THREE_MONTHS, trial } from './trial.ts'

const JSON_LOG = ['--log-format', 'json']

it('a run logs its events as JSON, each line with the run id', async () => {
  const { sandbox, call } = await trial(
    { extract: { ...ONE_SLOT, windows: { ...THREE_MONTHS, per_chain: 1 } } },
    {
      faults: [
        { kind: 'status', status: 503, requests: [2] },
        { kind: 'status', status: 429, retryAfter: '0', requests: [4] },
        { kind: 'status', status: 400, code: 'NO_WAY', requests: [7] },
      ],
    },
  )
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
  const { sandbox, cli, start } = await trial({
    service: { requests_per_second: 0.01 },
    extract: { page_size: 2 },
  })
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
