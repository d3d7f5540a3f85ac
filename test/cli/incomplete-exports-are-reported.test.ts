import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { unpackTar } from 'modern-tar'
import { expect, it } from 'vitest'
import type { Fault } from '../support/sandbox.ts'
import { trial } from './spillway.ts'

const KEY = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })

/** Three partitions, each of its own chain, in a data set with one run. */
async function world(faults: readonly Fault[] = []) {
  const { folder, file, call } = await trial(
    {
      service: '  requests_per_second: 1000\n  retries: 0',
      extract: '  concurrency: 1',
      rest: 'load: { path: out }',
      perChain: 1,
    },
    { faults },
  )
  writeFileSync(join(folder, 'key.pem'), KEY, { mode: 0o600 })
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
  expect(run).toMatchObject({ code: 1, stdout: expect.stringMatching(/^trial: 1 partition failed/) })
  for (const part of ['2 of 3 done, 1 failed', 'domain.scatterholt.com/2024-02-01..2024-03-01', '503'])
    expect(run.stdout).toContain(part)
  expect(run.stderr).toContain('503')
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
  expect(await firstLine()).toBe('NOT COMPLETE: 1 of 3 partitions is missing, of which 1 failed.')

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
  const { stdout, stderr } = await call('verify', file)
  expect(stdout).toContain('The export is complete: all 3 partitions.')
  expect(stderr).toContain('does not cover domain.quillmere.net, which the pipeline requests')
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
