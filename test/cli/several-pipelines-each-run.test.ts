import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { gravest } from '../../src/cli/terminal/exit-code.ts'
import { exits, jsonLines } from '../support/run-cli.ts'
import { PIPELINE, type PipelineParts, type Workspace } from '../support/workspace.ts'
import { ONE_SLOT, THREE_MONTHS, threeMonths, trial } from './trial.ts'

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
  for (const name of ['one', 'two', 'three'])
    await here.write(
      threeMonths({
        name,
        service: { requests_per_second: 1 },
        load: { path: name },
      }),
      `${name}.yaml`,
    )
  const { code, lines } = await runAll(here, ['one.yaml', 'two.yaml', 'three.yaml'])
  expect({ code, retries: lines.map(({ retries }) => retries) }).toEqual({ code: 0, retries: [0, 0, 0] })
})

describe('each of several pipelines runs, whatever the outcome of those before it', () => {
  it('after refused credentials, a failed partition, a budget that is used up, and an invalid file', async () => {
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
    for (const [name, each] of Object.entries(parts))
      await here.write(threeMonths({ name, ...each, load: { path: name, ...each.load } }), `${name}.yaml`)
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

  it('a signal stops them all', async () => {
    const here = await trial(
      { name: 'one', extract: ONE_SLOT },
      { faults: [{ kind: 'hang', requests: [1] }] },
    )
    await here.write(threeMonths({ name: 'two', load: { path: 'two' } }), 'two.yaml')
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
})

it('of exit codes the gravest counts', () => {
  const codes = [0, 4, 5, 1, 2, 3, 143]
  for (const [i, code] of codes.entries()) expect(gravest(codes.slice(0, i + 1))).toBe(code)
  expect(gravest([130, 2])).toBe(130)
})

it('plan, verify and check of several files: each in full, and the gravest exit code', async () => {
  const { cli, write } = await trial()
  for (const name of ['done', 'fresh'])
    await write(threeMonths({ name, load: { path: name } }), `${name}.yaml`)
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
