import { expect, it } from 'vitest'
import { accessTo, sandboxWith, spillway, start, workFolder, writePipeline } from './spillway.ts'

// One search in a hundred seconds: after the first, every partition waits for its turn.
const SLOW = '  requests_per_second: 0.01'

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)(
  '%s while it waits for its pace ends a run in order, and the next one goes on',
  async (signal, code) => {
    const sandbox = await sandboxWith()
    const folder = workFolder()
    const file = await writePipeline(folder, { service: SLOW })
    const running = start(['run', file, '--json'], folder, accessTo(sandbox))
    await running.until(() => sandbox.requests.length > 0)
    running.child.kill(signal)
    const { stdout, stderr, ...ended } = await running.result
    expect(ended.code).toBe(code)
    expect(stderr).toContain('Stopping')
    expect(JSON.parse(stdout)).toMatchObject({ status: 'interrupted', requests: 1 })

    await writePipeline(folder)
    const next = await spillway(['run', file, '--json'], folder, accessTo(sandbox))
    expect(next.code).toBe(0)
    // The first may have been answered before the signal, or given up.
    expect(sandbox.requests.length).toBeLessThanOrEqual(4)
    expect(JSON.parse(next.stdout)).toMatchObject({ status: 'complete', partitions: { done: 3 } })
  },
)

it('the second signal ends it at once', async () => {
  const sandbox = await sandboxWith({ faults: [{ kind: 'hang' }] })
  const folder = workFolder()
  const file = await writePipeline(folder)
  const running = start(['run', file], folder, accessTo(sandbox))
  await running.until(() => sandbox.requests.length > 0)
  running.child.kill('SIGINT')
  await running.until((stderr) => stderr.includes('Stopping'))
  running.child.kill('SIGTERM')
  expect(await running.result).toMatchObject({ code: 143, stdout: '' })
})

it('a request that is never answered is given up after a grace', async () => {
  const sandbox = await sandboxWith({ faults: [{ kind: 'hang' }] })
  const folder = workFolder()
  const file = await writePipeline(folder)
  const running = start(['run', file, '--json'], folder, accessTo(sandbox))
  await running.until(() => sandbox.requests.length > 0)
  running.child.kill('SIGINT')
  const { code, stdout } = await running.result
  expect(code).toBe(130)
  expect(JSON.parse(stdout)).toMatchObject({ status: 'interrupted' })
})

it('several pipelines end together', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const files = [
    await writePipeline(folder, { name: 'one', service: SLOW }),
    await writePipeline(folder, { name: 'two' }),
  ]
  const running = start(['run', ...files, '--json'], folder, accessTo(sandbox))
  await running.until(() => sandbox.requests.length > 0)
  running.child.kill('SIGTERM')
  const { code, stdout } = await running.result
  expect(code).toBe(143)
  const lines = stdout.trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { pipeline: 'one', status: 'interrupted' },
    { pipeline: 'two', status: 'interrupted', requests: 0 },
  ])
})
