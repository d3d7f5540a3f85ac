import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { PIPELINE } from '../support/workspace.ts'
import { ONE_SLOT, trial } from './trial.ts'

/** Samples by name and labels, read as strictly as Prometheus reads them, and by the rules of `promtool check metrics`. */
function samplesOf(text: string): ReadonlyMap<string, number> {
  expect(text.endsWith('\n')).toBe(true)
  const samples = new Map<string, number>()
  const names = new Set<string>()
  const [before, ...families] = text.trimEnd().split(/^# HELP /m)
  expect(before).toBe('')
  for (const family of families) {
    const [help = '', type, ...lines] = family.trimEnd().split('\n')
    const [, name = ''] = /^(spillway_[a-z_]+) ./.exec(help) ?? []
    expect(name, help).toMatch(/[a-z]$(?<!_(?:total|count|sum|bucket))/)
    expect(names.has(name), `${name} comes twice`).toBe(false)
    names.add(name)
    expect(type).toBe(`# TYPE ${name} gauge`)
    for (const line of lines) {
      const [, own, labels = '', value] = SAMPLE.exec(line) ?? []
      expect(own, line).toBe(name)
      expect(samples.has(name + labels), `${line} comes twice`).toBe(false)
      samples.set(name + labels, Number(value))
    }
  }
  return samples
}

const SAMPLE = /^([a-z_]+)(\{(?:[a-z]+="[^"\\\n]*",?)+\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/

it('a run replaces its metrics in one step, readable for others; a failed run keeps the last success', async () => {
  const { folder, cli } = await trial(
    { extract: ONE_SLOT },
    { faults: [{ kind: 'status', status: 503, requests: [2] }] },
  )
  const path = join(folder, 'spillway.prom')
  const run = async (...flags: string[]) => {
    const result = await cli('run', ...flags, '--json', '--metrics-file', path)
    expect(readdirSync(folder).filter((name) => name.includes('.prom'))).toEqual(['spillway.prom'])
    return { ...result, samples: samplesOf(readFileSync(path, 'utf8')) }
  }
  const nameOf = (name: string) => `spillway_${name}{pipeline="trial"}`
  const own = (values: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [nameOf(name), value]))
  const states = (done: number, pending: number) =>
    Object.fromEntries(
      Object.entries({ done, failed: 0, pending }).map(([state, count]) => [
        `spillway_partitions{pipeline="trial",state="${state}"}`,
        count,
      ]),
    )

  const stopped = await exits(4, run(PIPELINE, '--max-requests', '3'))
  expect(Object.fromEntries(stopped.samples)).toMatchObject({
    ...states(0, 3),
    ...own({ running: 0, last_run_success: 0, last_run_requests: 3, last_run_searches: 2, exit_code: 4 }),
    ...own({ page_size_rows: 2, last_run_retries: 1, last_run_rows: 4, searches_left: 999_999 }),
  })
  const version = (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version
  expect(stopped.samples.get(`spillway_info{pipeline="trial",version="${version}"}`)).toBe(1)
  expect(stopped.samples.has(nameOf('last_success_timestamp_seconds'))).toBe(false)
  expect(statSync(path).mode & 0o777).toBe(0o644)

  const before = Date.now() / 1000
  const complete = await run(PIPELINE)
  const success = complete.samples.get(nameOf('last_success_timestamp_seconds'))
  expect(success).toBeGreaterThanOrEqual(before - 1)
  const { rows } = JSON.parse(complete.stdout)
  expect(Object.fromEntries(complete.samples)).toMatchObject({
    ...states(3, 0),
    ...own({ last_run_success: 1, last_run_rows: rows, last_run_failures: 0, last_run_quarantined: 0 }),
    ...own({ last_run_duration_seconds: expect.any(Number), exit_code: 0 }),
  })

  // A run that cannot begin, and one whose file is invalid, keep the earlier metrics.
  for (const [flags, name, lastRun] of [
    [[PIPELINE, '--format', 'csv'], 'trial', 0],
    [['nowhere.yaml'], 'nowhere.yaml', undefined],
  ] as const) {
    const refused = await run(...flags)
    expect(refused.code).toBe(2)
    expect(refused.samples.get(nameOf('last_run_success'))).toBe(lastRun)
    expect(refused.samples.get(nameOf('last_success_timestamp_seconds'))).toBe(success)
    expect(refused.samples.get(`spillway_exit_code{pipeline="${name}"}`)).toBe(2)
  }
})

it('a metrics file that cannot be written is rejected before the run begins', async () => {
  const { sandbox, call } = await trial()
  await exits(2, call('run', '--metrics-file', 'nowhere/a.prom'), 'The metrics file cannot be written')
  expect(sandbox.requests).toEqual([])
})
