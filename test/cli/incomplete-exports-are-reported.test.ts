import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { unpackTar } from 'modern-tar'
import { expect, it } from 'vitest'
import { writeKeyPair } from '../support/key-pair.ts'
import type { Fault } from '../support/sandbox.ts'
import { THREE_MONTHS, trial } from './trial.ts'

const APART = { windows: { ...THREE_MONTHS, per_chain: 1 }, concurrency: 1 }

/** Three partitions, each of its own chain, in a data set with one run. */
async function world(faults: readonly Fault[] = []) {
  const here = await trial({ service: { retries: 0 }, extract: APART }, { faults })
  writeKeyPair(here.folder)
  const json = async (command: string, ...flags: string[]) => {
    const { code, value } = await here.json(command, ...flags)
    return { code, ...(value as object) }
  }
  return { here, call: here.call, json, run: await here.call('run') }
}

const FAILED: Fault = { kind: 'status', status: 503, requests: [2] }
const INCOMPLETE_LINE = /^The export is INCOMPLETE: 1 of 3 partitions failed\.$/m

it('intact files and completeness are two results, and --complete requires both', async () => {
  const { call, json, run } = await world([FAILED])
  expect(run).toMatchObject({ code: 1, stdout: expect.stringMatching(/^trial: 1 partition failed/) })
  for (const part of ['2 of 3 done, 1 failed', 'domain.scatterholt.com/2024-02-01..2024-03-01', '503'])
    expect(run.stdout).toContain(part)
  expect(run.stderr).toContain('503')
  const partitions = { total: 3, done: 2, failed: 1, pending: 0 }
  expect(await json('verify')).toMatchObject({ code: 0, ok: true, complete: false, partitions, shards: 2 })
  expect(await json('verify', '--complete')).toMatchObject({ code: 1, ok: true, complete: false })
  const printed = await call('verify')
  expect(printed.code).toBe(0)
  expect(printed.stdout).toMatch(/the files are intact: 2 shards, \d+ rows$/m)
  expect(printed.stdout).toMatch(INCOMPLETE_LINE)

  expect((await call('run')).code).toBe(0)
  const done = { code: 0, ok: true, complete: true, partitions: { total: 3, done: 3, failed: 0, pending: 0 } }
  expect(await json('verify', '--complete')).toMatchObject(done)
  expect((await call('verify')).stdout).toContain('The export is complete: all 3 partitions.\n')
})

it('a data set in which every partition failed is not reported as intact', async () => {
  const { call, json, run } = await world([{ kind: 'status', status: 503 }])
  expect(run.code).toBe(1)
  expect(await json('verify', '--complete')).toMatchObject({ code: 1, ok: true, complete: false, shards: 0 })
  const { stdout } = await call('verify')
  expect(stdout).toContain('there is no file to check')
  expect(stdout).toContain('INCOMPLETE: 3 of 3 partitions failed.')
})

it('load, query, evidence and summary say the same', async () => {
  const { here, call, json } = await world([FAILED])
  const load = ['load', '--to', 'duckdb:leaks.db'] as const
  expect((await call(...load)).stdout).toMatch(INCOMPLETE_LINE)
  expect(await json(...load)).toMatchObject({ code: 0, complete: false })
  const query = await call('query', 'SELECT 1 AS one', '--csv')
  expect(query.stdout).toBe('one\n1\n')
  expect(query.stderr).toBe(
    'The export is INCOMPLETE: 1 of 3 partitions failed; the result covers the exported part.\n',
  )
  expect((await call('summary')).stdout).toMatch(INCOMPLETE_LINE)
  expect(await json('summary')).toMatchObject({ complete: false })
  expect((await call('sign', '--key', 'key.pem')).code).toBe(0)
  const evidence = ['evidence', '--output', 'a.tar'] as const
  expect((await call(...evidence)).stdout).toMatch(INCOMPLETE_LINE)
  expect(await json(...evidence)).toMatchObject({ complete: false })
  const firstLine = async () => {
    const entries = await unpackTar(readFileSync(join(here.folder, 'a.tar')))
    const readme = entries.find(({ header }) => header.name === 'README.txt')!
    return Buffer.from(readme.data!).toString().split('\n')[0]
  }
  expect(await firstLine()).toBe(
    'The export is INCOMPLETE: 1 of 3 partitions failed, as of the last run (this',
  )

  expect((await call('run')).code).toBe(0)
  const printed = 'The export is complete: all 3 partitions.'
  expect((await call(...load)).stdout).toContain(printed)
  expect((await call('query', 'SELECT 1 AS one', '--csv')).stderr).toBe('')
  expect((await call('summary')).stdout).toContain(printed)
  expect((await call('sign', '--key', 'key.pem')).code).toBe(0)
  expect((await call(...evidence)).stdout).toContain(printed)
  expect(await firstLine()).toBe(
    'The export is complete: all 3 partitions, as of the last run (this part is not',
  )
})

it('newly planned windows, a stopped run and a moved data set without state are reported as incomplete where known', async () => {
  const { here, call, json } = await world()
  expect(await json('verify')).toMatchObject({ complete: true })
  // Another domain that no run has requested yet.
  await here.write({ extract: { ...APART, domains: ['scatterholt.com', 'quillmere.net'] } })
  const { stdout, stderr } = await call('verify')
  expect(stdout).toContain('The export is INCOMPLETE: 3 of 6 partitions not done.')
  expect((await call('verify', '--complete')).code).toBe(1)
  expect(stderr).toContain('does not cover domain.quillmere.net, which the pipeline requests')
  expect((await call('run', '--max-requests', '1')).code).toBe(4)
  expect((await call('verify')).stdout).toMatch(
    /STOPPED: [23] of 6 partitions not done\.\n {2}The budget of 1 request is used up/,
  )
  expect((await call('run')).code).toBe(0)
  expect(await json('verify', '--complete')).toMatchObject({ code: 0, partitions: { total: 6, done: 6 } })
  rmSync(join(here.output, '_SUCCESS'))
  expect((await call('verify')).stdout).toContain('INCOMPLETE: it has no _SUCCESS.')
  rmSync(join(here.output, '_state'), { recursive: true })
  expect(await json('verify')).toMatchObject({ code: 0, ok: true, complete: false, partitions: { done: 6 } })
  writeFileSync(join(here.output, '_SUCCESS'), '')
  expect(await json('verify')).toMatchObject({ complete: true, partitions: { total: 6, done: 6 } })
})
