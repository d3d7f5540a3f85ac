import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { exits, jsonLines, runCli as startCli } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'
import { CLI, concurrently, diskFault, type Ended } from './support.ts'
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

const hasUnshare = spawnSync('unshare', ['-rm', 'true']).status === 0

const FAILING = scenario({ format: 'parquet', partitionBy: '[query, window]' })

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
  const fault = diskFault(here.output, 'eio:mkdir _state/sealed')
  const ended = await startCli({
    args: ['run', 'pipeline.yaml'],
    cwd: here.folder,
    env: { ...here.env, ...fault },
  })
  expect(ended.code, ended.stderr).toBe(1)
  expect(ended.stderr).toContain('The disk reports an input/output error')
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

describe('a disk that', () => {
  test.each([
    ['is full from any write on', 'full', /^(?:create|mkdir|write|rename|link) /, 'The disk is full'],
    ['fails at any fsync', 'eio', /^sync /, 'The disk reports an input/output error'],
  ])('%s ends a run cleanly, and a later one completes it', async (_, mode, calls, message) => {
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
          expectDecentMessage(stopped, attempt.sandbox.token)
        }
        await expectWholeShards(attempt, expected)
        expect(await attempt.runHere(), fault).toMatchObject({ status: 'complete', error: null })
        await expectSameResult(attempt, expected)
      }),
    )
    // Calls interleave, so some faults find nothing to strike.
    expect(struck).toBeGreaterThan(faults.length / 2)
  })
})

// Two pages of 7 rows in flight at 1 kB a row, and 1 MB for small files.
const NEEDED = 2 * 7 * 1024 + (1 << 20)

describe('a disk without room for the pages in flight', () => {
  // Where the system can make a real small disk, the test below shows the same.
  test.runIf(THOROUGH || !hasUnshare)(
    'ends a run before a page is lost, and the next run at once',
    async () => {
      await trial(FAILING, async (attempt) => {
        const env = diskFault(attempt.workspace.output, `room:${NEEDED + 6000}`)
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
        expect(attempt.sandbox.requests).toHaveLength(requests)
        expect(await attempt.runHere()).toMatchObject({ status: 'complete', error: null })
        // Every page that was paid for is committed.
        await expectSameResult(attempt, { scenario: FAILING, clean, about: 'room', interruptions: 0 })
      })
    },
  )
})

describe('a disk that is full when the manifest is due', () => {
  const summaries = [
    ['--json', '"manifest":null'],
    ['', 'could not be written'],
  ] as const
  test.runIf(THOROUGH).each(summaries)('makes the summary %s name no manifest', async (flag, expected) => {
    await trial(FAILING, async (attempt) => {
      const env = diskFault(attempt.workspace.output, 'full:rename _manifest.json')
      const args = flag === '' ? [] : [flag]
      const { code, stdout, stderr } = await attempt.run({ env, args })
      expect(code, stderr).toBe(1)
      expect(stderr).toContain('The disk is full')
      expect(stdout, stderr).toContain(expected)
      expect(stdout).not.toContain(join(attempt.workspace.output, '_manifest.json'))
      expect(existsSync(join(attempt.workspace.output, '_manifest.json'))).toBe(false)
      const { manifest } = await attempt.runHere()
      expect(manifest).toBe(join(attempt.workspace.output, '_manifest.json'))
    })
  })
})

// A real small disk of the system, as a cross-check of the simulated one above.
test.skipIf(!hasUnshare)('on a real disk that is nearly full no page is paid for and lost', async () => {
  await trial(FAILING, async (attempt) => {
    const { workspace, sandbox } = attempt
    const kilobytes = Math.ceil(NEEDED / 1024) + 20
    // The disk exists as long as the shell: two runs write to it, then their files are copied.
    const script = `mount -t tmpfs -o size=${kilobytes}k tmpfs "$2" && cd "$3" || exit 9
"$0" "$1" run pipeline.yaml --json; "$0" "$1" run pipeline.yaml --json
cp -a "$2" "$3/kept"`
    await mkdir(workspace.output)
    const args = ['-rm', 'sh', '-c', script, process.execPath, CLI, workspace.output, workspace.folder]
    const env = { PATH: process.env.PATH, ...workspace.env }
    const { stdout, stderr } = await promisify(execFile)('unshare', args, { env })
    const runs = jsonLines(stdout)
    expect(
      runs.map(({ status }) => status),
      stderr,
    ).toEqual(['failed', 'failed'])
    expect(stderr).toContain('Free some space and run again')
    expect(runs[0].requests).toBeGreaterThan(0)
    expect(runs[1].requests).toBe(0)
    expect(sandbox.requests).toHaveLength(runs[0].requests)
    await rm(workspace.output, { recursive: true })
    await rename(join(workspace.folder, 'kept'), workspace.output)
    expect(await attempt.runHere()).toMatchObject({ status: 'complete', error: null })
    await expectSameResult(attempt, { scenario: FAILING, clean, about: 'tmpfs', interruptions: 0 })
  })
})

function expectDecentMessage({ stdout, stderr }: Ended, secret: string): void {
  expect(stderr).not.toMatch(/^\s+at /m)
  expect(stderr + stdout).not.toContain(secret)
}
