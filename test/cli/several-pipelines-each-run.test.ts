import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { gravest } from '../../src/cli/terminal/exit-code.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { accessTo, type Environment, sandboxWith, spillway, start, writePipeline } from './spillway.ts'

/** `run --json` on several files: the exit code, and what the lines say. */
async function runAll(files: readonly string[], folder: string, env: Environment, ...flags: string[]) {
  const { code, stdout, stderr } = await spillway(['run', ...files, '--json', ...flags], folder, env)
  return { code, stderr, lines: parsed(stdout) }
}

function parsed(stdout: string) {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

const FIVE = {
  pipeline: 'five',
  status: 'failed',
  requests: 0,
  manifest: null,
  error: expect.stringContaining('The folder belongs to the pipeline "four"'),
}

describe('each of several pipelines runs, whatever the outcome of those before it', () => {
  it('after refused credentials, a failed partition, a budget that is used up, and an invalid file', async () => {
    const sandbox = await sandboxWith({ faults: [{ kind: 'status', status: 400, requests: [2] }] })
    const folder = scratchFolder()
    writeFileSync(join(folder, 'broken.yaml'), 'name: broken\n')
    const files = [
      await writePipeline(folder, { name: 'one', service: '  token_env: OTHER' }),
      await writePipeline(folder, { name: 'two', extract: '  concurrency: 1', perChain: 1 }),
      await writePipeline(folder, { name: 'short', extract: '  max_requests: 1', perChain: 1 }),
      'broken.yaml',
      'missing.yaml',
      await writePipeline(folder, { name: 'three', service: '  token_env: NOBODY_SET_THIS' }),
      await writePipeline(folder, { name: 'four' }),
      await writePipeline(folder, { name: 'five', rest: 'load: { path: output/four }' }),
    ]
    const env = { ...accessTo(sandbox), OTHER: 'not-the-token' }
    const { code, lines, stderr } = await runAll(files, folder, env)
    expect(code).toBe(3)
    expect(lines).toMatchObject([
      { pipeline: 'one', status: 'failed', error: expect.stringContaining('401') },
      { pipeline: 'two', status: 'failed', partitions: { done: 2, failed: 1 } },
      { pipeline: 'short', status: 'budget', requests: 1 },
      { pipeline: null, status: 'failed', error: expect.stringContaining('broken.yaml') },
      { pipeline: null, status: 'failed', error: expect.stringContaining('missing.yaml') },
      { pipeline: 'three', status: 'failed', error: expect.stringContaining('NOBODY_SET_THIS') },
      { pipeline: 'four', status: 'complete', partitions: { done: 3 } },
      FIVE,
    ])
    // Each summary has the same members, also of a pipeline that could not begin.
    expect(new Set(lines.map((line) => Object.keys(line).join())).size).toBe(1)
    expect(stderr.split('NOBODY_SET_THIS is not set')).toHaveLength(2)
    // Also of a single one.
    expect(await runAll(['five.yaml'], folder, env)).toMatchObject({ code: 2, lines: [FIVE] })
    expect(await runAll(['missing.yaml'], folder, env)).toMatchObject({ code: 2, lines: [lines[4]] })
  })

  it('a signal stops them all', async () => {
    const sandbox = await sandboxWith({ faults: [{ kind: 'hang', requests: [1] }] })
    const folder = scratchFolder()
    const files = [
      await writePipeline(folder, { name: 'one', extract: '  concurrency: 1' }),
      await writePipeline(folder, { name: 'two' }),
      'missing.yaml',
    ]
    const running = start(['run', ...files, '--json', '--log-level', 'debug'], folder, accessTo(sandbox))
    await running.until(() => sandbox.requests.length > 0)
    running.child.kill('SIGTERM')
    const { code, stdout } = await running.result
    expect(code).toBe(143)
    expect(parsed(stdout)).toMatchObject([
      { pipeline: 'one', status: 'interrupted' },
      { pipeline: 'two', status: 'interrupted', requests: 0 },
      { pipeline: null, status: 'interrupted' },
    ])
    expect(sandbox.requests).toHaveLength(1)
  })
})

it.each([
  [[0, 0], 0],
  [[0, 4], 4],
  [[4, 5], 5],
  [[5, 1, 4], 1],
  [[1, 2, 0], 2],
  [[2, 3, 1], 3],
  [[3, 143], 143],
  [[130, 2], 130],
])('of the exit codes %j the gravest is %i', (codes, code) => {
  expect(gravest(codes)).toBe(code)
})
