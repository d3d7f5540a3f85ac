import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { gravest } from '../../src/cli/terminal/exit-code.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits, jsonLines } from '../support/run-cli.ts'
import { PIPELINE, type PipelineParts, type Workspace } from '../support/workspace.ts'
import { ONE_SLOT, THREE_MONTHS, threeMonths, trial } from './trial.ts'

/** Another pipeline file of this name, and by default with a data set of this name. */
const add = ({ write }: Workspace, name: string, parts: PipelineParts = {}) =>
  write(threeMonths({ name, ...parts, load: { path: name, ...parts.load } }), `${name}.yaml`)

/** `run --json` on several files: the exit code, and what the lines say. */
async function runAll({ cli }: Workspace, files: readonly string[]) {
  const { code, stdout, stderr } = await cli('run', ...files, '--json')
  return { code, stderr, lines: jsonLines(stdout) }
}

const FIVE = {
  pipeline: 'five',
  status: 'failed',
  requests: 0,
  manifest: null,
  error: { what: expect.stringContaining('The folder belongs to the pipeline "four"') },
}

it('pipelines of one organization share its rate limit, one after the other', async () => {
  const here = await trial({}, { requestsPerSecond: 1 })
  const service = { requests_per_second: 1 }
  for (const name of ['one', 'two', 'three']) await add(here, name, { service })
  const { code, lines } = await runAll(here, ['one.yaml', 'two.yaml', 'three.yaml'])
  expect({ code, retries: lines.map(({ retries }) => retries) }).toEqual({ code: 0, retries: [0, 0, 0] })
})

it('each pipeline runs after refused credentials, a failed partition, a budget that is used up, or an invalid file', async () => {
  const faults = [{ kind: 'status', status: 400, requests: [2] }] as const
  const here = await trial({}, { faults }, { OTHER: 'not-the-token' })
  const windows = { ...THREE_MONTHS, per_chain: 1 }
  const parts: Readonly<Record<string, PipelineParts>> = {
    one: { service: { token_env: 'OTHER' } },
    two: { extract: { windows, concurrency: 1 } },
    short: { extract: { windows, max_requests: 1 } },
    three: { service: { token_env: 'NOBODY_SET_THIS' } },
    four: {},
    five: { load: { path: 'four' } },
  }
  for (const [name, each] of Object.entries(parts)) await add(here, name, each)
  await writeFile(join(here.folder, 'broken.yaml'), 'name: broken\n')
  const names = ['one', 'two', 'short', 'broken', 'missing', 'three', 'four', 'five']
  const files = names.map((name) => `${name}.yaml`)
  const { code, lines, stderr } = await runAll(here, files)
  expect(code).toBe(3)
  expect(lines).toMatchObject([
    { pipeline: 'one', status: 'failed', error: { what: expect.stringContaining('401') } },
    { pipeline: 'two', status: 'failed', partitions: { done: 2, failed: 1 } },
    { pipeline: 'short', status: 'budget', requests: 1 },
    { pipeline: null, status: 'failed', error: { where: expect.stringContaining('broken.yaml') } },
    { pipeline: null, status: 'failed', error: { where: expect.stringContaining('missing.yaml') } },
    { pipeline: 'three', status: 'failed', error: { next: expect.stringContaining('NOBODY_SET_THIS') } },
    { pipeline: 'four', status: 'complete', partitions: { done: 3 } },
    FIVE,
  ])
  // Each summary has the same members, also of a pipeline that could not begin.
  expect(new Set(lines.map((line) => Object.keys(line).join())).size).toBe(1)
  expect(stderr.split('NOBODY_SET_THIS is not set')).toHaveLength(2)
  // Also of a single one.
  expect(await runAll(here, ['five.yaml'])).toMatchObject({ code: 2, lines: [FIVE] })
  expect(await runAll(here, ['missing.yaml'])).toMatchObject({ code: 2, lines: [lines[4]] })
})

it('a signal stops all pipelines', async () => {
  const here = await trial({ name: 'one', extract: ONE_SLOT }, { faults: [{ kind: 'hang', requests: [1] }] })
  await add(here, 'two')
  const files = [PIPELINE, 'two.yaml', 'missing.yaml']
  const running = here.start('run', ...files, '--json', '--log-level', 'debug')
  await running.until(() => here.sandbox.requests.length > 0)
  running.child.kill('SIGTERM')
  const { code, stdout } = await running.result
  expect(code).toBe(143)
  expect(jsonLines(stdout)).toMatchObject([
    { pipeline: 'one', status: 'interrupted' },
    { pipeline: 'two', status: 'interrupted', requests: 0 },
    { pipeline: null, status: 'interrupted' },
  ])
  expect(here.sandbox.requests).toHaveLength(1)
})
it('of exit codes the gravest counts', () => {
  const codes = [0, 4, 5, 1, 2, 3, 143]
  for (const [i, code] of codes.entries()) expect(gravest(codes.slice(0, i + 1))).toBe(code)
  expect(gravest([130, 2])).toBe(130)
})

it('plan, verify and check of several files: each in full, and the gravest exit code', async () => {
  const here = await trial()
  const { cli } = here
  for (const name of ['done', 'fresh']) await add(here, name)
  expect((await cli('run', 'done.yaml')).code).toBe(0)
  for (const [name, exit, first, second] of [
    ['plan', 0, 'done: 3 partitions: 3 done', 'fresh: 3 partitions: 0 done'],
    ['verify', 2, 'done: the files are intact', ''],
    ['check', 0, 'ok  file         done.yaml: done', 'ok  file         fresh.yaml: fresh'],
  ] as const) {
    const { code, stdout } = await cli(name, 'done.yaml', 'fresh.yaml')
    const alone = await cli(name, 'done.yaml')
    expect([name, code]).toEqual([name, exit])
    expect(stdout.startsWith(first) && alone.stdout.startsWith(first), stdout).toBe(true)
    expect(stdout).toContain(`\n\n${second}`)
  }
  const missing = await exits(2, cli('status', 'done.yaml', 'nowhere.yaml', '--json'))
  expect(missing.stdout).toContain(
    '{"pipeline":null,"file":"nowhere.yaml","error":{"kind":"config","what":"The pipeline file does not exist',
  )
  const { stdout } = await exits(0, cli('check', 'done.yaml', 'fresh.yaml', '--resolved'))
  expect(parseAllDocuments(stdout).map((document) => document.toJS().name)).toEqual(['done', 'fresh'])
})

/** Twenty files; some of their pipelines are not as they should be. */
async function fleet() {
  const here = await trial()
  const names = Array.from({ length: 19 }, (_, i) => `org${String(i).padStart(2, '0')}`)
  const unlike: Readonly<Record<string, PipelineParts>> = {
    org03: { service: { token_env: 'OTHER' } },
    org04: { extract: { page_size: 2, max_requests: 1 } },
    org05: { extract: { windows: { from: '2024-01-01', until: 'now', every: 'year' } } },
  }
  for (const name of names) await add(here, name, unlike[name])
  const ran = names.slice(0, 10).map((name) => `${name}.yaml`)
  await exits(3, here.with({ OTHER: 'not-the-token' }).cli('run', ...ran))
  await rm(join(here.folder, 'org07', (await shardPaths(join(here.folder, 'org07')))[0]!))
  return { here, files: [...names.map((name) => `${name}.yaml`), 'nowhere.yaml'] }
}

it('status of twenty files is a line for each, with what is wrong; of one file it is all', async () => {
  const { here, files } = await fleet()
  const { stderr, stdout } = await exits(2, here.start('status', ...files).result)
  expect(stderr).toContain('The pipeline file does not exist (nowhere.yaml)')
  const [titles, ...lines] = stdout.trimEnd().split('\n')
  expect(titles).toMatch(/^pipeline +verdict +rows +covers until +waiting +last run +remarks$/)
  expect(lines.map((line) => line.split(' ')[0])).toEqual(
    files.map((file) => (file === 'nowhere.yaml' ? file : file.slice(0, -5))),
  )
  const unlike = new Map(lines.map((line) => [line.split(' ')[0], line]))
  const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d UTC`
  for (const [name, expected] of [
    ['org03', `STOPPED +${time} +The service responded with 401: .*…`],
    ['org04', `STOPPED +2 +${time} +The budget of 1 request is used up; 3 of 3 partitions left .*…`],
    ['org05', `complete +40 +20\\d\\d-01-01 +1 +${time}`],
    ['org07', `DAMAGED +10 +2024-04-01 +${time} +A shard is missing \\(.*\\.parquet\\)`],
    ['nowhere.yaml', 'ERROR +The pipeline file does not exist'],
  ] as const) {
    expect(unlike.get(name)).toMatch(new RegExp(`^${name} +${expected}$`))
    unlike.delete(name)
  }
  for (const [name = '', line] of unlike) {
    const expected =
      name < 'org10' ? `complete +10 +2024-04-01 +${time}` : 'INCOMPLETE +nothing is exported yet'
    expect(line).toMatch(new RegExp(`^org\\d\\d +${expected}$`))
  }

  const json = await exits(2, here.cli('status', ...files, '--json'))
  expect(json.stdout.match(/^\{"pipeline":/gm)).toHaveLength(20)
  const alone = await exits(0, here.cli('status', 'org03.yaml'))
  expect(alone.stdout).toMatch(/^org03: STOPPED(?:.*\n)+query +partitions/)
})

it('beside a verdict stand what is overdue, and where file and data set differ', async () => {
  const here = await trial()
  await exits(0, here.call('run'))
  await here.write(threeMonths({ transform: { secret: 'drop' } }), 'other.yaml')
  await writeFile(join(here.output, '_report.html'), '')
  const { stdout, stderr } = await exits(0, here.cli('status', 'pipeline.yaml', 'other.yaml'))
  expect(stdout).toMatch(/^trial +complete .* the summary page is not that of the data set as it is now/m)
  expect(stdout).toMatch(/^trial +complete .* the file and the data set differ: transform\.secret/m)
  expect(stderr).toBe('')
})
