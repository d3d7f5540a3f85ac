import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { PIPELINE, pipelineText } from '../e2e/support/place.ts'
import { SAME } from '../e2e/support/rows.ts'
import { DOMAINS, digests, EXTRACT, ofOneMachine, until, world } from './support/world.ts'

it('rows, bytes and searches are those of one machine, and what is there afterwards is a data set like any other', async () => {
  const here = await world({ load: { partition_by: ['query', 'window'], shard_rows: 25 } }, { latencyMs: 10 })
  await Promise.all([here.worker(), here.worker()])
  const { code, summary, stderr } = await here.submitAndWait()
  expect(code, stderr).toBe(0)
  const searches = here.searches().length
  expect(summary).toMatchObject({
    status: 'complete',
    partitions: { total: 36, done: 36, failed: 0, pending: 0 },
    rows: 1200,
    requests: searches,
    retries: 0,
  })
  expect(await here.difference()).toEqual(SAME)
  expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
  expect(existsSync(join(here.output, '_report.html'))).toBe(true)
  const alone = await ofOneMachine(here)
  expect(await digests(here.output)).toEqual(alone.shards)
  expect(searches).toBe(alone.searches)

  expect((await here.cli('verify', PIPELINE)).code).toBe(0)
  const status = await here.json('status')
  expect(status.value).toMatchObject({ totals: { done: 36, rows: 1200, requests: searches, open_shards: 0 } })
  expect((await here.run()).summary).toMatchObject({ status: 'complete', rows: 0, requests: 0 })
  expect((await here.submitAndWait()).summary).toMatchObject({ status: 'complete', rows: 0, requests: 0 })
  expect(here.searches()).toHaveLength(searches)
  // New windows: by workers, then by one machine.
  await here.write({
    extract: { ...EXTRACT, windows: { ...EXTRACT.windows, from: '2023-12-01' } },
    load: { shard_rows: 25 },
  })
  expect((await here.submitAndWait()).summary).toMatchObject({ status: 'complete', rows: 0, requests: 3 })
  expect(await here.query('SELECT count(*)::integer AS n FROM spillway.lines')).toEqual([{ n: 0 }])
})

it.each([['none'], [['query']]])('by %s workers fill the same folders', async (partition_by) => {
  const here = await world({ load: { partition_by, shard_rows: 100 } }, { latencyMs: 0 })
  await Promise.all([here.worker(), here.worker()])
  const { code, summary, stderr } = await here.submitAndWait()
  expect(code, stderr).toBe(0)
  expect(summary.rows).toBe(1200)
  expect(await here.difference()).toEqual(SAME)
  expect((await here.cli('verify', PIPELINE)).code).toBe(0)
  const names = Object.keys(await digests(here.output))
  expect(names).toContain(names[0]!.replace(/part-\d+/, 'part-00000'))
  // One machine goes on in the same folders.
  await here.write({
    extract: { ...EXTRACT, windows: { ...EXTRACT.windows, until: '2025-02-01' } },
    load: { partition_by, shard_rows: 100 },
  })
  expect((await here.run()).code).toBe(0)
  expect((await here.cli('verify', PIPELINE)).code).toBe(0)
  expect(await here.difference()).toEqual(SAME)
})

describe('while workers are at it', () => {
  it('nothing is submitted twice, nothing else is let in, and status tells', async () => {
    const here = await world({})
    const [first, second] = await Promise.all([here.submit('--json'), here.submit('--json')])
    const [one, other] = [first, second].map(({ stdout, stderr }) => {
      expect(stderr).not.toContain('not foreseen')
      return JSON.parse(stdout)
    })
    expect(one.run).toBe(other.run)
    expect([one.how, other.how].sort()).toEqual(['begun', 'there'])
    expect(JSON.parse((await here.submit('--json')).stdout)).toMatchObject({ how: 'there', chains: 12 })
    expect(await here.query('SELECT count(*)::integer AS n FROM spillway.chains')).toEqual([{ n: 12 }])

    const run = await here.cli('run', PIPELINE)
    expect(run.code).toBe(5)
    expect(run.stderr).toMatch(/Workers export this data set.*submit/is)
    await writeFile(
      join(here.folder, 'other.yaml'),
      pipelineText({ extract: { ...EXTRACT, domains: DOMAINS.slice(1) }, load: {} }),
    )
    const another = await here.cli('submit', 'other.yaml')
    expect(another.code).toBe(2)
    expect(another.stderr).toContain('Another version of this pipeline')

    const worker = await here.worker()
    await until('half of it is done', () => here.searches().length > 60)
    const status = await here.status()
    expect(status.runs).toMatchObject([{ status: 'active' }])
    expect(status.workers).toMatchObject([{ pid: worker.pid }])
    expect(status.workers[0]!.chains.length).toBeGreaterThan(0)
    const { stdout } = await here.cli('status', PIPELINE)
    expect(stdout).toMatch(/1 worker in 127\.0\.0\.1/)
    expect(stdout).toMatch(/[1-9]\d* of 36 partitions done/)

    expect((await here.submitAndWait()).code).toBe(0)
    expect(await here.difference()).toEqual(SAME)
    worker.kill('SIGTERM')
    expect((await worker.ended).code).toBe(0)
  })

  it('--fresh takes the data set back: workers can do nothing more there', async () => {
    const here = await world({}, { latencyMs: 100 })
    const worker = await here.worker()
    const submitted = here.submitAndWait()
    await until('it is at work', () => here.searches().length > 15)
    const fresh = await here.run('--fresh', '--yes')
    expect(fresh.summary).toMatchObject({ status: 'complete', rows: 1200 })
    const { code, stdout } = await submitted
    expect([code, stdout]).toEqual([2, expect.stringContaining('started over')])
    expect(await here.difference()).toEqual(SAME)
    expect((await here.cli('verify', PIPELINE)).code).toBe(0)
    // Workers take it again where they are told to.
    expect((await here.submitAndWait()).summary).toMatchObject({ status: 'complete', requests: 0 })
    worker.kill('SIGTERM')
    expect((await worker.ended).code).toBe(0)
  })

  it('the budget holds for all of them, and another submit goes on without a search too many', async () => {
    const here = await world({ extract: { max_requests: 40 } }, { latencyMs: 10 })
    await Promise.all([here.worker(), here.worker()])
    const first = await here.submitAndWait()
    expect(first.code).toBe(4)
    expect(first.summary).toMatchObject({
      status: 'budget',
      requests: 40,
      manifest: join(here.output, '_manifest.json'),
    })
    expect(here.searches()).toHaveLength(40)
    expect(existsSync(join(here.output, '_SUCCESS'))).toBe(false)
    expect((await here.cli('run', PIPELINE)).code).toBe(5)
    let last = first
    for (let i = 0; i < 10 && last.code === 4; i++) last = await here.submitAndWait()
    expect(last.code).toBe(0)
    expect(await here.difference()).toEqual(SAME)
    const searches = here.searches().length
    expect(searches).toBe((await ofOneMachine(here)).searches)
  })

  it('a chain that fails stops no other, and fails with its reason', async () => {
    const isPoisoned = (body: unknown): boolean => JSON.stringify(body).includes('quillmere.net')
    const here = await world(
      { service: { retries: 1 } },
      { latencyMs: 0, faults: [{ kind: 'status', status: 500, when: ({ body }) => isPoisoned(body) }] },
    )
    await here.worker()
    const { code, summary, stdout } = await here.submitAndWait()
    expect(code).toBe(1)
    expect(summary).toMatchObject({ status: 'failed', rows: 800, partitions: { done: 24, failed: 12 } })
    expect(stdout).toMatch(/"failures":\[.*500/)
    expect((await here.cli('verify', PIPELINE)).code).toBe(0)
  })

  it('one that lacks a secret leaves such chains to others, and says so', async () => {
    const here = await world({ service: { token_env: 'OTHER_TOKEN' } }, { latencyMs: 0 })
    const submitted = here.submitAndWait()
    await until('it is there', async () => (await here.query('SELECT 1 FROM spillway.runs')).length > 0)
    const without = await here.worker()
    await until('it was looked at', async () => {
      const [row] = await here.query('SELECT waiting FROM spillway.runs')
      return row?.waiting === 12
    })
    await here.worker({ env: { OTHER_TOKEN: here.sandbox.token } })
    const ended = await submitted
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining('no worker is there')])
    without.kill('SIGTERM')
    const { stderr } = await without.ended
    expect(stderr).toMatch(/left to other workers.*OTHER_TOKEN/)
    expect(await here.difference()).toEqual(SAME)
  })

  it('no table and no log holds a secret', async () => {
    const key = 'a-mask-key-that-is-long-enough-for-hmac-0123'
    const here = await world(
      {
        transform: { secret: 'hmac' },
        extract: { ...EXTRACT, max_requests: 60, queries: [{ type: 'secret', secret_env: 'LEAKED' }] },
      },
      { invalidRate: 0.05, nastyRate: 0 },
      { env: { SPILLWAY_MASK_KEY: key, LEAKED: 'correct horse battery' } },
    )
    const worker = await here.worker()
    expect((await here.submitAndWait()).code).toBe(4)
    worker.kill('SIGTERM')
    const { stdout, stderr } = await worker.ended
    const tables = await here.query(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'spillway'`,
    )
    let text = stdout + stderr
    for (const { name } of tables) text += JSON.stringify(await here.query(`SELECT * FROM spillway.${name}`))
    expect(text).toContain('scatterholt.com')
    expect(text).toContain('LEAKED')
    const secrets = [key, 'correct horse battery', here.sandbox.token, 'not-to-be-shown-4711']
    const leaked = [...here.sandbox.expected({ query: { type: 'domain', fqdn: DOMAINS[0]! } })]
    for (const item of leaked) {
      const hash = (item as { hash?: unknown } | null)?.hash
      if (typeof hash === 'string' && hash.length > 15) secrets.push(hash)
    }
    expect(secrets.filter((secret) => text.includes(secret))).toEqual([])
  })
})

it('what is missing or wrong is said before anything is changed', async () => {
  const here = await world({})
  const { SPILLWAY_DATABASE_URL: _, ...env } = here.env
  const { runCli } = await import('../support/run-cli.ts')
  const unset = await runCli({ args: ['submit', PIPELINE], cwd: here.folder, env })
  expect([unset.code, unset.stderr]).toEqual([2, expect.stringContaining('SPILLWAY_DATABASE_URL is not set')])
  const dead = { ...here.env, SPILLWAY_DATABASE_URL: 'postgres://postgres@127.0.0.1:1/none' }
  const away = await runCli({ args: ['submit', PIPELINE], cwd: here.folder, env: dead })
  expect([away.code, away.stderr]).toEqual([1, expect.stringContaining('does not answer (ECONNREFUSED)')])
  await here.query('DROP SCHEMA spillway CASCADE')
  const empty = await here.cli('submit', PIPELINE)
  expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining('spillway cluster init')])
  expect(existsSync(here.output)).toBe(false)
})
