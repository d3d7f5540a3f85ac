import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { unpackTar } from 'modern-tar'
import { expect, it } from 'vitest'
import type { Fault } from '../support/sandbox.ts'
import { accessTo, sandboxWith, spillway, workFolder, writePipeline } from './spillway.ts'

const KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })

/** Three partitions, each of its own chain, in a data set with one run. */
async function world(faults: readonly Fault[] = []) {
  const sandbox = await sandboxWith({ faults })
  const folder = workFolder()
  const file = await writePipeline(folder, {
    service: '  requests_per_second: 1000\n  retries: 0',
    extract: '  concurrency: 1',
    rest: 'load: { path: out }',
    perChain: 1,
  })
  writeFileSync(join(folder, 'key.pem'), KEY, { mode: 0o600 })
  const env = accessTo(sandbox)
  const call = (...args: string[]) => spillway(args, folder, env)
  const json = async (...args: string[]) => {
    const { code, stdout } = await call(...args, '--json')
    return { code, ...(JSON.parse(stdout) as Record<string, unknown>) }
  }
  return { folder, file, call, json, run: await call('run', file) }
}

const FAILED: Fault = { kind: 'status', status: 503, requests: [2] }
const INCOMPLETE_LINE = /^The export is INCOMPLETE: 1 of 3 partitions failed\.$/m

it('intact files and completeness are two results, and --complete requires both', async () => {
  const { file, call, json, run } = await world([FAILED])
  expect(run.code).toBe(1)
  const partitions = { total: 3, done: 2, failed: 1, pending: 0 }
  expect(await json('verify', file)).toMatchObject({
    code: 0,
    ok: true,
    complete: false,
    partitions,
    shards: 2,
  })
  expect(await json('verify', file, '--complete')).toMatchObject({ code: 1, ok: true, complete: false })
  const printed = await call('verify', file)
  expect(printed).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/the files are intact: 2 shards, \d+ rows$/m),
  })
  expect(printed.stdout).toMatch(INCOMPLETE_LINE)

  expect((await call('run', file)).code).toBe(0)
  const done = { total: 3, done: 3, failed: 0, pending: 0 }
  expect(await json('verify', file, '--complete')).toMatchObject({
    code: 0,
    ok: true,
    complete: true,
    partitions: done,
  })
  expect((await call('verify', file)).stdout).toContain('The export is complete: all 3 partitions.\n')
})

it('a data set in which every partition failed is not reported as intact', async () => {
  const { file, call, json, run } = await world([{ kind: 'status', status: 503 }])
  expect(run.code).toBe(1)
  expect(await json('verify', file, '--complete')).toMatchObject({
    code: 1,
    ok: true,
    complete: false,
    shards: 0,
  })
  const { stdout } = await call('verify', file)
  expect(stdout).toContain('there is no file to check')
  expect(stdout).toContain('INCOMPLETE: 3 of 3 partitions failed.')
})

it('load, query, evidence and summary say the same', async () => {
  const { folder, file, call, json } = await world([FAILED])
  const load = ['load', file, '--to', 'duckdb:leaks.db'] as const
  expect((await call(...load)).stdout).toMatch(INCOMPLETE_LINE)
  expect(await json(...load)).toMatchObject({ code: 0, complete: false })
  const query = await call('query', file, 'SELECT 1 AS one', '--csv')
  expect(query.stdout).toBe('one\n1\n')
  expect(query.stderr).toBe(
    'The export is INCOMPLETE: 1 of 3 partitions failed; the result covers the exported part.\n',
  )
  expect((await call('summary', file)).stdout).toMatch(INCOMPLETE_LINE)
  expect(await json('summary', file)).toMatchObject({ complete: false })
  expect((await call('sign', file, '--key', 'key.pem')).code).toBe(0)
  const evidence = ['evidence', file, '--output', 'a.tar'] as const
  expect((await call(...evidence)).stdout).toMatch(INCOMPLETE_LINE)
  expect(await json(...evidence)).toMatchObject({ complete: false })
  const firstLine = async () => {
    const entries = await unpackTar(readFileSync(join(folder, 'a.tar')))
    const readme = entries.find(({ header }) => header.name === 'README.txt')!
    return Buffer.from(readme.data!).toString().split('\n')[0]
  }
  expect(await firstLine()).toBe('NOT COMPLETE: 1 of 3 partitions are missing, of which 1 failed.')

  expect((await call('run', file)).code).toBe(0)
  const printed = 'The export is complete: all 3 partitions.'
  expect((await call(...load)).stdout).toContain(printed)
  expect((await call('query', file, 'SELECT 1 AS one', '--csv')).stderr).toBe('')
  expect((await call('summary', file)).stdout).toContain(printed)
  expect((await call('sign', file, '--key', 'key.pem')).code).toBe(0)
  expect((await call(...evidence)).stdout).toContain(printed)
  expect(await firstLine()).toBe('COMPLETE: all 3 partitions, as of the last run (this line is not signed).')
})

it('newly planned windows, a stopped run and a moved data set without state are reported as incomplete where known', async () => {
  const { folder, file, call, json } = await world()
  expect(await json('verify', file)).toMatchObject({ complete: true })
  // Another domain that no run has requested yet.
  const text = readFileSync(join(folder, file), 'utf8')
  writeFileSync(join(folder, file), text.replace('[scatterholt.com]', '[scatterholt.com, quillmere.net]'))
  expect((await call('verify', file)).stdout).toContain('INCOMPLETE: 3 of 6 partitions not done.')
  // Flags that narrow the output do not narrow what is planned.
  expect((await call('verify', file, '--domain', 'scatterholt.com')).stdout).toContain('3 of 6 partitions')
  expect((await call('run', file, '--max-requests', '1')).code).toBe(4)
  expect((await call('verify', file)).stdout).toMatch(/INCOMPLETE: [23] of 6 partitions not done\./)
  expect((await call('run', file)).code).toBe(0)
  expect(await json('verify', file, '--complete')).toMatchObject({
    code: 0,
    partitions: { total: 6, done: 6 },
  })
  rmSync(join(folder, 'out/_SUCCESS'))
  expect((await call('verify', file)).stdout).toContain('INCOMPLETE: it has no _SUCCESS.')
  rmSync(join(folder, 'out/_state'), { recursive: true })
  expect(await json('verify', file)).toMatchObject({ code: 0, ok: true, complete: false, partitions: null })
  writeFileSync(join(folder, 'out/_SUCCESS'), '')
  expect(await json('verify', file)).toMatchObject({ complete: true, partitions: null })
})

it('before any run there is nothing to verify: exit 2, as for the related commands', async () => {
  const folder = workFolder()
  const file = await writePipeline(folder, { rest: 'load: { path: out }' })
  const env = { SPILLWAY_BASE_URL: 'http://127.0.0.1:1' }
  for (const args of [
    ['verify', file],
    ['verify', file, '--json'],
    ['verify', file, '--complete'],
    ['summary', file],
    ['query', file, 'SELECT 1'],
  ]) {
    const ended = await spillway(args, folder, env)
    expect([args[0], ended.code, ended.stdout]).toEqual([args[0], 2, ''])
  }
})

it('with another mask key, every command refuses instead of calling a complete export incomplete', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const file = await writePipeline(folder, {
    extract: '  queries: [{ type: keyword, keyword: a }]',
    rest: 'transform: { identity: hmac }\nload: { path: out, partition_by: none }',
  })
  const access = accessTo(sandbox)
  const as = (key: string) => (args: readonly string[]) => {
    return spillway(args, folder, { ...access, SPILLWAY_MASK_KEY: key.repeat(32) })
  }
  const [own, other, without] = [as('k'), as('l'), as('')]
  expect((await own(['run', file])).code).toBe(0)
  const query = ['query', file, 'SELECT 1 AS one', '--csv'] as const
  const load = ['load', file, '--to', 'duckdb:leaks.db'] as const
  const verify = ['verify', file, '--complete'] as const
  for (const args of [['status', file], verify, [...verify, '--json'], query, load]) {
    const { code, stdout, stderr } = await other(args)
    expect([args[0], code, stdout]).toEqual([args[0], 2, ''])
    expect(stderr).toContain(
      'The data set was begun with other settings: the mask key is not the one used so far (trial.yaml:9:1)',
    )
  }
  expect(existsSync(join(folder, 'leaks.db'))).toBe(false)
  // Without a key, the names of queries are not known, and _SUCCESS shows completeness.
  expect((await without(verify)).stdout).toContain('The export is complete.\n')
  expect((await own(verify)).stdout).toContain('The export is complete: all 6 partitions.\n')
  expect((await own(query)).stderr).toBe('')
  expect((await own(load)).stdout).toContain('The export is complete: all 6 partitions.')
})
