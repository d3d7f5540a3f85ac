import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { accessTo, sandboxWith, spillway, workFolder, writePipeline } from './spillway.ts'

const hasPromtool = spawnSync('promtool', ['--version']).status === 0

/** Samples by name and labels, read as strictly as Prometheus reads them, and by the rules of `promtool check metrics`. */
function samplesOf(text: string): ReadonlyMap<string, number> {
  expect(text.endsWith('\n')).toBe(true)
  const samples = new Map<string, number>()
  const families = new Set<string>()
  let helped = ''
  let current = ''
  for (const line of text.trimEnd().split('\n')) {
    const comment = /^# (HELP|TYPE) ([a-z_]+) (.+)$/.exec(line)
    if (comment !== null) {
      const [, kind, name = '', rest] = comment
      if (kind === 'HELP') {
        expect(families.has(name), `${name} comes twice`).toBe(false)
        helped = name
      } else {
        expect([name, rest]).toEqual([helped, 'gauge'])
        families.add(name)
        current = name
      }
      continue
    }
    const sample = /^([a-z_]+)(\{(?:[a-z]+="[^"\\\n]*",?)+\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(line)
    expect(sample, line).not.toBeNull()
    const [, name = '', labels = '', value] = sample!
    expect(name).toBe(current)
    expect(name).toMatch(/^spillway_/)
    expect(name).not.toMatch(/_(total|count|sum|bucket)$/)
    expect(samples.has(name + labels), `${line} comes twice`).toBe(false)
    samples.set(name + labels, Number(value))
  }
  if (hasPromtool) {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text })
    expect(status, `${stdout}${stderr}`).toBe(0)
  }
  return samples
}

it('a run replaces its metrics in one step, readable for others; a failed run keeps the last success', async () => {
  const sandbox = await sandboxWith({ faults: [{ kind: 'status', status: 503, requests: [2] }] })
  const folder = workFolder()
  const file = await writePipeline(folder, { extract: '  page_size: 2\n  concurrency: 1' })
  const path = join(folder, 'spillway.prom')
  const run = async (...flags: string[]) => {
    const result = await spillway(
      ['run', ...flags, '--json', '--metrics-file', path],
      folder,
      accessTo(sandbox),
    )
    expect(readdirSync(folder).filter((name) => name.includes('.prom'))).toEqual(['spillway.prom'])
    return { ...result, samples: samplesOf(readFileSync(path, 'utf8')) }
  }
  const own = (name: string) => `spillway_${name}{pipeline="trial"}`
  const states = (done: number, pending: number) => [
    [`spillway_partitions{pipeline="trial",state="done"}`, done],
    [`spillway_partitions{pipeline="trial",state="failed"}`, 0],
    [`spillway_partitions{pipeline="trial",state="pending"}`, pending],
  ]

  const stopped = await run(file, '--max-requests', '3')
  expect(stopped.code).toBe(4)
  expect(Object.fromEntries(stopped.samples)).toMatchObject({
    ...Object.fromEntries(states(0, 3)),
    [own('running')]: 0,
    [own('last_run_success')]: 0,
    [own('last_run_requests')]: 3,
    [own('last_run_searches')]: 1,
    [own('page_size_rows')]: 2,
    [own('last_run_retries')]: 1,
    [own('last_run_rows')]: 4,
    [own('searches_left')]: 999_999,
    spillway_exit_code: 4,
  })
  const version = (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version
  expect(stopped.samples.get(`spillway_info{pipeline="trial",version="${version}"}`)).toBe(1)
  expect(stopped.samples.has(own('last_success_timestamp_seconds'))).toBe(false)
  expect(statSync(path).mode & 0o777).toBe(0o644)

  const before = Date.now() / 1000
  const complete = await run(file)
  const success = complete.samples.get(own('last_success_timestamp_seconds'))
  expect(success).toBeGreaterThanOrEqual(before - 1)
  expect(Object.fromEntries(complete.samples)).toMatchObject({
    ...Object.fromEntries(states(3, 0)),
    [own('last_run_success')]: 1,
    [own('last_run_rows')]: JSON.parse(complete.stdout).rows,
    [own('last_run_failures')]: 0,
    [own('last_run_quarantined')]: 0,
    [own('last_run_duration_seconds')]: expect.any(Number),
    spillway_exit_code: 0,
  })

  // A run that cannot begin, and one whose file is invalid, keep the earlier metrics.
  for (const [flags, code, lastRun] of [
    [[file, '--format', 'csv'], 2, 0],
    [['nowhere.yaml'], 2, undefined],
  ] as const) {
    const refused = await run(...flags)
    expect(refused.code).toBe(code)
    expect(refused.samples.get(own('last_run_success'))).toBe(lastRun)
    expect(refused.samples.get(own('last_success_timestamp_seconds'))).toBe(success)
    expect(refused.samples.get('spillway_exit_code')).toBe(code)
  }
})

it('a metrics file that cannot be written is rejected before the run begins', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const file = await writePipeline(folder)
  for (const path of ['nowhere/a.prom', '.', '/dev/null']) {
    const { code, stderr } = await spillway(['run', file, '--metrics-file', path], folder, accessTo(sandbox))
    expect(code).toBe(2)
    expect(stderr).toContain('The metrics file cannot be written')
  }
  expect(sandbox.requests).toEqual([])
  // An empty file has nothing to lose.
  writeFileSync(join(folder, 'a.prom'), '')
  const { code } = await spillway(['run', file, '--metrics-file', 'a.prom'], folder, accessTo(sandbox))
  expect(code).toBe(0)
  expect(samplesOf(readFileSync(join(folder, 'a.prom'), 'utf8')).get('spillway_exit_code')).toBe(0)
})

it('only its own metrics file is replaced, whatever the path and the links', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const file = await writePipeline(folder, { rest: 'load: { path: out }' })
  expect((await spillway(['run', file], folder, accessTo(sandbox))).code).toBe(0)
  const sent = sandbox.requests.length
  const path = (name: string) => join(folder, name)
  writeFileSync(path('notes.txt'), 'do not lose this')
  symlinkSync('notes.txt', path('link.prom'))
  symlinkSync('nowhere', path('dangling.prom'))
  symlinkSync('out', path('way-in'))
  const own = '# HELP spillway_exit_code Exit code of the command that wrote this file.\n'
  writeFileSync(path('own.prom'), own)
  symlinkSync('own.prom', path('link-to-own.prom'))
  const kept = ['notes.txt', file, 'out/_manifest.json', 'out/_state/checkpoint.jsonl', 'own.prom']
  const before = kept.map((name) => readFileSync(path(name), 'utf8'))
  for (const [name, why] of [
    ['notes.txt', 'a file that is not from spillway'],
    [file, 'a file that is not from spillway'],
    ['link.prom', 'is a symbolic link'],
    ['dangling.prom', 'is a symbolic link'],
    ['link-to-own.prom', 'is a symbolic link'],
    ['out/_manifest.json', 'in the folder of the data set'],
    ['out/new.prom', 'in the folder of the data set'],
    ['out/_state/checkpoint.jsonl', 'in the folder of the data set'],
    ['out/nowhere/new.prom', 'in the folder of the data set'],
    ['way-in/new.prom', 'in the folder of the data set'],
    ['nowhere/../out/new.prom', 'in the folder of the data set'],
  ]) {
    const ended = await spillway(['run', file, '--metrics-file', name!], folder, accessTo(sandbox))
    expect([name, ended.code, ended.stderr]).toEqual([name, 2, expect.stringContaining(why!)])
  }
  expect(kept.map((name) => readFileSync(path(name), 'utf8'))).toEqual(before)
  expect(readdirSync(path('out')).some((name) => name.includes('prom'))).toBe(false)
  expect(sandbox.requests.length).toBe(sent)
  // Its own file is replaced, also beside the folder.
  expect((await spillway(['run', file, '--metrics-file', 'own.prom'], folder, accessTo(sandbox))).code).toBe(
    0,
  )
  expect(readFileSync(path('own.prom'), 'utf8')).not.toBe(own)
})
