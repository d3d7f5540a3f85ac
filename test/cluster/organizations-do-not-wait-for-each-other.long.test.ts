import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { carryOut } from '../support/in-this-process.ts'
import { PASSWORD, pgRows } from '../support/postgres/client.ts'
import { exits, jsonLines, start } from '../support/run-cli.ts'
import { SHORT_LEASE, until, world } from './support/world.ts'

const backend = 'postgres'
const TURN_MS = 500
/** More pages than fit into a turn. */
const PAGES = 40

it('with fewer slots than organizations each gets a turn, and a turn costs no request', async () => {
  const here = await world({ backend, organizations: 6, sandbox: { records: 10 * PAGES, latencyMs: 40 } })
  const worker = here.worker({ concurrency: 2, sliceMs: TURN_MS })
  const { code, stdout } = await here.submit('--wait', '--json')
  expect(code, worker.log()).toBe(0)
  // Nobody had to end before all had begun.
  const times = here.organizations.map((each) => here.searches(each).map(({ at }) => at))
  expect(Math.max(...times.map(([first]) => first!))).toBeLessThan(
    Math.min(...times.map((all) => all.at(-1)!)),
  )
  for (const { pipeline, rows, requests, shards } of jsonLines(stdout)) {
    expect([rows, requests]).toEqual([10 * PAGES, PAGES])
    expect(here.searches(pipeline)).toHaveLength(PAGES)
    // All turns are one run in the manifest.
    const manifest = JSON.parse(readFileSync(join(here.folder, pipeline, '_manifest.json'), 'utf8'))
    expect(manifest.runs).toMatchObject([{ requests: PAGES, status: 'complete' }])
    expect(manifest.shards).toHaveLength(shards)
  }
})

it('two pipelines of one organization never run at the same time, also when submitted one after the other', async () => {
  const here = await world({ backend, organizations: 2, sandbox: { records: 200, latencyMs: 40 } })
  here.write('org-1', { service: { organization: 'org-0' } })
  here.workerHere()
  here.workerHere()
  expect((await here.cli('submit', 'org-0.yaml')).code).toBe(0)
  await until('the first is at work', () => here.searches('org-0').length > 2)
  expect((await here.cli('submit', 'org-1.yaml', '--wait')).code).toBe(0)
  const [first, second] = here.organizations.map((each) => here.searches(each).map(({ at }) => at))
  expect([first?.length, second?.length]).toEqual([20, 20])
  expect(Math.min(...(second ?? []))).toBeGreaterThan(Math.max(...(first ?? [])))
})

describe('a failure of one organization', () => {
  it('stops no other: a refused token, a budget, an invalid pipeline', async () => {
    const here = await world({ backend, organizations: 4 })
    here.write('org-1', { service: { token_env: 'BAD_TOKEN', retries: 0 } })
    here.write('org-2', { extract: { max_requests: 5 } })
    here.write('org-3', { service: { token_env: 'NO_SUCH_VARIABLE' } })
    const worker = here.workerHere({ env: { BAD_TOKEN: 'not-a-token-that-anybody-gave' } })
    const { code, stdout } = await here.submit('missing.yaml', '--wait', '--json')
    expect(code, worker.log()).toBe(3)
    // In the order of the files, not of their ends.
    expect(jsonLines(stdout)).toMatchObject([
      { pipeline: 'org-0', status: 'complete', rows: 120 },
      { pipeline: 'org-1', status: 'failed', rows: 0 },
      { pipeline: 'org-2', status: 'budget', requests: 5 },
      { pipeline: 'org-3', status: 'failed', error: { what: expect.stringContaining('NO_SUCH_VARIABLE') } },
      { pipeline: null, status: 'failed', error: { where: 'missing.yaml' } },
    ])
    await here.expectRows('org-0')
    expect(await here.jobs()).toMatchObject([
      { name: 'org-0', state: 'completed' },
      { name: 'org-1', state: 'failed', failed_reason: expect.stringContaining('org-1') },
      { name: 'org-2', state: 'completed' },
      { name: 'org-3', state: 'failed', failed_reason: expect.stringContaining('NO_SUCH_VARIABLE') },
    ])
    // The budget applies to one submission; the next one starts anew.
    const again = await exits(4, here.cli('submit', 'org-2.yaml', '--wait', '--json'))
    expect(JSON.parse(again.stdout)).toMatchObject({ requests: 5 })
    expect(here.searches('org-2')).toHaveLength(10)
  })

  it('ends a job with which too many workers have died', async () => {
    const here = await world({ backend, organizations: 2, ...SHORT_LEASE })
    await here.submit()
    // As the last of them has left it.
    const died = `SET state = 'active', stalled_count = 30, lock_token = 'gone', locked_until_ms = 1`
    await pgRows(
      here.env.SPILLWAY_QUEUE_URL,
      `UPDATE bullmq.job ${died} WHERE queue = 'organizations' AND name = 'org-0'`,
    )
    here.workerHere()
    await until('it has failed', async () =>
      (await here.jobs()).some(({ failed_reason }) => String(failed_reason).includes('stalled')),
    )
    expect(here.searches('org-0')).toEqual([])
    await until('the other has ended', () => existsSync(join(here.folder, 'org-1', '_SUCCESS')))
    // Submitted again, it starts anew.
    expect((await here.cli('submit', 'org-0.yaml', '--wait')).code).toBe(0)
  })

  it('waits for the next month when its searches for this month are used up', async () => {
    // A page is a search.
    const parts = { extract: { monthly_searches: 5 } }
    const here = await world({ backend, parts, sandbox: { rowsPerSearch: 0 } })
    here.workerHere()
    const { stdout } = await exits(4, here.submit('--wait', '--json'))
    expect(JSON.parse(stdout)).toMatchObject({ status: 'budget', requests: 5 })
    const [job] = await here.jobs()
    const now = new Date()
    const nextMonth = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
    expect([job!.state, Number(job!.process_at_ms)]).toEqual(['delayed', nextMonth])
  })

  it('locks its data set against run', async () => {
    let letGo = (): void => {}
    const held = new Promise<void>((resolve) => (letGo = resolve))
    const faults = [{ kind: 'hold', until: held, requests: [2] }] as const
    const here = await world({ backend, sandbox: { faults } })
    here.workerHere()
    await here.submit()
    await until('it is at work', () => here.searches().length > 1)
    await exits(5, here.cli('run', 'org-0.yaml'), 'Another run holds this pipeline')
    letGo()
    await exits(0, here.submit('--wait'))
  })
})

it('no table and no log contains a secret, or a masked query value', async () => {
  const key = 'a-mask-key-that-is-long-enough-for-hmac-0123'
  const env = { SPILLWAY_MASK_KEY: key, LEAKED: 'correct horse battery' }
  const here = await world({
    backend,
    env,
    sandbox: { latencyMs: 20, invalidRate: 0.05 },
    parts: {
      transform: { secret: 'hmac', identity: 'hmac' },
      extract: {
        queries: [
          { type: 'secret', secret_env: 'LEAKED' },
          { type: 'email', email: 'somebody.hidden@org-0.example.com' },
        ],
      },
    },
  })
  const worker = here.worker()
  const { stdout, stderr } = await exits(0, here.submit('--wait', '--json'))
  worker.kill('SIGTERM')
  await worker.ended
  const url = here.env.SPILLWAY_QUEUE_URL
  const named = `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'bullmq'`
  const tables = await pgRows(url, named)
  let text = stdout + stderr + worker.log()
  for (const { name } of tables) text += JSON.stringify(await pgRows(url, `SELECT * FROM bullmq."${name}"`))
  expect(text).toContain('LEAKED')
  const secrets = [key, 'correct horse battery', here.sandbox.token, 'somebody.hidden', PASSWORD]
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([])
  expect(here.searches().some(({ body }) => JSON.stringify(body).includes('somebody.hidden'))).toBe(true)
})

it('what a worker lacks is reported with file and line, and no file is written', async () => {
  const here = await world({ backend })
  here.write('org-0', { service: { token_env: 'OF_NOBODY' } })
  start(['worker'], here.folder, here.env)
  const { stdout } = await exits(2, here.submit('--wait', '--json'))
  const { pipeline, error } = JSON.parse(stdout)
  expect(pipeline).toBe('org-0')
  expect(error.next).toMatch(
    /org-0\.yaml:\d+:\d+: service\.token_env: the environment variable OF_NOBODY is not set/,
  )
  expect(existsSync(join(here.folder, 'org-0'))).toBe(false)
})

it('missing and wrong settings are reported before anything is changed', async () => {
  const here = await world({ backend, url: 'postgres://postgres@127.0.0.1:1/none' })
  await exits(1, here.submit(), 'The queue does not respond (ECONNREFUSED)')
  const { SPILLWAY_QUEUE_URL: _, ...env } = here.env
  const cwd = here.folder
  await exits(2, carryOut({ args: ['worker'], cwd, env }), 'SPILLWAY_QUEUE_URL is not set')
  const wrong = { ...env, SPILLWAY_QUEUE_URL: 'amqp://x' }
  await exits(2, carryOut({ args: ['submit', 'org-0.yaml'], cwd, env: wrong }), 'is no address of a queue')
})
