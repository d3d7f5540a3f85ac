import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { searchesOf } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'
import { concurrently, diskFault } from './support.ts'
import {
  expectSameResult,
  expectWholeShards,
  SOME,
  sampledCalls,
  scenario,
  trial,
  type Undisturbed,
  undisturbed,
} from './trial.ts'

const FAILING = scenario({ format: 'parquet' })

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(FAILING)
})

test('a failure while a shard is written leaves no file, log or lock open, and a plain run writes it of the log', async () => {
  const domains = ['scatterholt.com']
  const windows = { from: '2024-01-01', until: '2025-01-01' }
  const here = await newWorkspace(
    { extract: { domains, windows, page_size: 10_000 }, load: { format: 'csv' } },
    { domains, records: 12_000, nastyRate: 0 },
  )
  // Its rows are in a temporary file by then.
  const failing = here.with(diskFault(here.output, 'eio:mkdir _state/sealed'))
  await exits(1, failing.call('run'), 'The disk reports an input/output error')
  expect(await readdir(join(here.output, '_state'))).toEqual(['checkpoint.jsonl', 'log'])
  // The log was closed: the checkpoint covers its last commit.
  const last = (await readdir(join(here.output, '_state/log'))).map(Number).sort().at(-1)!
  const saved = /"kind":"end_of_log","file":(\d+)/.exec(
    await readFile(join(here.output, '_state/checkpoint.jsonl'), 'utf8'),
  )
  expect(Number(saved?.[1])).toBeGreaterThanOrEqual(last)
  expect((await here.run()).summary).toMatchObject({ status: 'complete', requests: 0 })
  expect((await here.json('verify', '--complete')).value).toMatchObject({ ok: true, rows: 12_000 })
})

test.each([
  ['is full from any write on', 'full', /^(?:create|mkdir|write|rename|link) /, 'The disk is full'],
  ['fails at any fsync', 'eio', /^sync /, 'The disk reports an input/output error'],
])('a disk that %s ends a run cleanly, and a later one completes it', async (_, mode, calls, message) => {
  const chosen = sampledCalls(clean.calls, SOME).filter((number) => calls.test(clean.calls[number - 1]!))
  const faults = some(chosen, 1).map((number) => `${mode}:${number}`)
  let struck = 0
  await concurrently(faults, (fault) =>
    trial(FAILING, async (attempt) => {
      const expected = { scenario: FAILING, clean, about: fault, interruptions: 1 }
      const stopped = await attempt.run({ env: diskFault(attempt.workspace.output, fault) })
      if (stopped.code !== 0) {
        struck++
        expect(stopped.code, `${fault}\n${stopped.stderr}`).toBe(1)
        expect(stopped.stderr, fault).toContain(message)
        expect(stopped.stderr).not.toMatch(/^\s+at /m)
        expect(stopped.stderr + stopped.stdout).not.toContain(attempt.sandbox.token)
      }
      await expectWholeShards(attempt, expected)
      expect(await attempt.runHere(), fault).toMatchObject({ status: 'complete', error: null })
      await expectSameResult(attempt, expected)
    }),
  )
  // Calls interleave, so some faults find nothing to strike.
  expect(struck).toBeGreaterThan(faults.length / 2)
})

test('a disk without room for the pages in flight ends a run before a page is lost, and the next run at once', async () => {
  await trial(FAILING, async (attempt) => {
    // Two pages of 7 rows in flight at 1 kB a row, and 1 MB for small files.
    const env = diskFault(attempt.workspace.output, `room:${2 * 7 * 1024 + (1 << 20) + 6000}`)
    const stopped = await exits(1, attempt.run({ env, args: ['--json'] }))
    expect(stopped.stderr).toMatch(
      /The disk has room for 1\.[01] MB more, and the pages in flight may need 1\.1 MB.*Free some space and run again/,
    )
    const { requests, rows, manifest } = JSON.parse(stopped.stdout)
    expect(manifest).toBe(join(attempt.workspace.output, '_manifest.json'))
    expect(requests).toBeGreaterThan(0)
    expect(requests).toBeLessThan(clean.searches)
    expect(rows).toBeGreaterThan(0)
    expect((await attempt.run({ env })).code).toBe(1)
    expect(searchesOf(attempt.sandbox.requests)).toHaveLength(requests)
    expect(await attempt.runHere()).toMatchObject({ status: 'complete', error: null })
    // Every page that was paid for is committed.
    await expectSameResult(attempt, { scenario: FAILING, clean, about: 'room', interruptions: 0 })
  })
})

test.runIf(THOROUGH).each([
  ['--json', '"manifest":null'],
  ['--no-progress', 'could not be written'],
])('a disk that is full when the manifest is due makes the summary %s name none', async (flag, expected) => {
  await trial(FAILING, async (attempt) => {
    const manifest = join(attempt.workspace.output, '_manifest.json')
    const env = diskFault(attempt.workspace.output, 'full:rename _manifest.json')
    const { stdout, stderr } = await exits(1, attempt.run({ env, args: [flag] }), 'The disk is full')
    expect(stdout, stderr).toContain(expected)
    expect(stdout).not.toContain(manifest)
    expect(existsSync(manifest)).toBe(false)
    expect((await attempt.runHere()).manifest).toBe(manifest)
  })
})
