import { expect, it } from 'vitest'
import { start, trial } from './spillway.ts'

it('a pipeline locked by another run is exit 5, and its summary says so', async () => {
  // The request never gets a response, so the first run keeps the lock.
  const { sandbox, folder, file, env, call } = await trial({}, { faults: [{ kind: 'hang' }] })
  const first = start(['run', file, '--log-level', 'debug'], folder, env)
  await first.until(() => sandbox.requests.length > 0)
  const second = await call('run', file, '--json')
  expect(second.code).toBe(5)
  expect(JSON.parse(second.stdout)).toMatchObject({ pipeline: 'trial', status: 'failed', requests: 0 })
  expect(second.stderr).toContain(`process ${first.child.pid}`)
})

it('a partition that fails is exit 1; the others are exported; stderr and stdout report both', async () => {
  const refuse = { kind: 'status', status: 400, code: 'NO_WAY', requests: [2] } as const
  const { file, call } = await trial({ extract: '  concurrency: 1', perChain: 1 }, { faults: [refuse] })
  const { code, stdout, stderr } = await call('run', file)
  expect(code).toBe(1)
  expect(stdout).toMatch(/^trial: 1 partition failed/)
  expect(stdout).toContain('2 of 3 done, 1 failed')
  expect(stdout).toContain('domain.scatterholt.com/2024-02-01..2024-03-01')
  expect(stdout).toContain('NO_WAY')
  expect(stderr).toContain('NO_WAY')
})

it('--fresh without a terminal needs --yes', async () => {
  const { file, call } = await trial()
  expect((await call('run', file)).code).toBe(0)
  const refused = await call('run', file, '--fresh', '--json')
  expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' })
  expect(refused.stderr).toContain('--yes')
  const allowed = await call('run', file, '--fresh', '--yes', '--json')
  expect(JSON.parse(allowed.stdout)).toMatchObject({
    status: 'complete',
    requests: 1,
    partitions: { done: 3 },
  })
})
