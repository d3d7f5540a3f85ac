import { appendFile, cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { type Fault, repeatedSearches } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { faultFigures } from './figures.ts'
import { hurriedClock } from './hurried-clock.ts'
import type { Ended } from './support.ts'
import { expectSameResult, scenario, type Trial, trial, type Undisturbed, undisturbed } from './trial.ts'

const figures = faultFigures('two runs on one pipeline')

const EXPORT = scenario({ format: 'csv', partitionBy: '[query, window]' })

const OTHER_BOOT = '00000000-0000-0000-0000-000000000000'

let clean: Undisturbed

/** The files of a run that was killed at its first search. */
let killed: string

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
})

describe('during a run', () => {
  test('a second one exits 5 at once, and read-only commands work', async () => {
    await whileHeld(async ({ run, command, sandbox }) => {
      const before = sandbox.requests.length
      for (const args of [[], ['--fresh', '--yes']]) {
        const second = await exits(5, run({ args }))
        expect(second.stderr).toMatch(
          new RegExp(`process \\d+ on host ${hostname()} since ${new Date().getUTCFullYear()}-`),
        )
      }
      expect(sandbox.requests.length).toBe(before)
      for (const name of ['status', 'plan', 'verify']) {
        const reader = await command(name, { args: ['--json'] })
        expect(reader.code, `${name}\n${reader.stderr}`).toBe(0)
      }
    })
  })

  test('a stopped process keeps its lock; a killed one loses it at once, and no row is lost', async () => {
    await whileHeld(async (attempt, holder, ended) => {
      holder('SIGSTOP')
      expect((await attempt.run()).code).toBe(5)
      holder('SIGCONT')
      expect((await attempt.run()).code).toBe(5)
      holder('SIGSTOP')
      holder('SIGKILL')
      expect((await ended).signal).toBe('SIGKILL')
      figures.kills++
      await exits(0, attempt.run())
      await expectSameResult(attempt, {
        scenario: EXPORT,
        clean,
        figures,
        about: 'taken over',
        interruptions: 1,
      })
      const { runs } = JSON.parse(await readFile(join(attempt.workspace.output, '_manifest.json'), 'utf8'))
      // The killed run recorded no total, but its pages are committed.
      expect(runs).toMatchObject([{ status: 'interrupted', requests: 3 }, { status: 'complete' }])
    })
  })
})

// The identity of a process is read from /proc. `test/state/lock-is-held-by-one-living-process` tries the lock alone.
describe.runIf(THOROUGH && process.platform === 'linux')('a stale lock file', () => {
  beforeAll(async () => {
    killed = await mkdtemp(join(tmpdir(), 'spillway-killed-'))
    await keepKilled(killed)
  })
  afterAll(() => rm(killed, { recursive: true, force: true }))

  const stale = [
    ['of another process with the same id', { pid: process.pid, process_start: '1' }],
    ['of a process that has ended', { pid: 2 ** 22 + 1 }],
  ] as const
  test.each(some(stale, 1))('%s is taken over at once', async (_, change) => {
    await withLockFile(change, async (attempt) => {
      await exits(0, attempt.run())
      await expectSameResult(attempt, {
        scenario: EXPORT,
        clean,
        figures,
        about: 'lock file',
        interruptions: 1,
      })
      expect(await lockFiles(attempt)).toEqual([])
    })
  })

  const silent = [
    [
      'from before a restart of the machine, or of another machine with its name',
      { boot: OTHER_BOOT, pid: process.pid },
    ],
    ['of another host', { host: 'etl-2', since: '2024-01-01T02:00:00.000Z' }],
  ] as const
  test.each(some(silent, 1))(
    '%s is taken over when its heartbeats have stopped for a while',
    async (_, change) => {
      await withLockFile(change, async (attempt) => {
        const clock = hurriedClock()
        const startedMs = clock.monotonicMs()
        const said: string[] = []
        const onLog = (_level: string, message: string): void => void said.push(message)
        expect(await attempt.runHere({ clock, onLog })).toMatchObject({ status: 'complete', error: null })
        expect(clock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(20_000)
        expect(said.filter((message) => message.includes('20 s without a heartbeat'))).toHaveLength(1)
        await expectSameResult(attempt, {
          scenario: EXPORT,
          clean,
          figures,
          about: 'lock file',
          interruptions: 1,
        })
        expect(await lockFiles(attempt)).toEqual([])
      })
    },
  )

  test('of another host is respected while its heartbeats come', async () => {
    await withLockFile({ host: 'etl-2', since: '2024-01-01T02:00:00.000Z' }, async (attempt) => {
      const lockFile = join(attempt.workspace.output, '_state/lock.000000000001')
      const heartbeats = setInterval(() => void appendFile(lockFile, '.'), 1000)
      const refused = await attempt.run().finally(() => clearInterval(heartbeats))
      expect(refused.code).toBe(5)
      expect(refused.stderr).toMatch(/on host etl-2 since 2024-01-01T02:00:00.000Z .*lock\.000000000001/)
      expect(await lockFiles(attempt)).toEqual(['lock.000000000001'])
    })
  })
})

test.runIf(THOROUGH)('of several runs that start together only one works at a time', async () => {
  const slow = { ...EXPORT, sandbox: { ...EXPORT.sandbox, latencyMs: 30 } }
  await trial(slow, async (attempt) => {
    // Each a process of its own.
    const codes = (
      await Promise.all(Array.from({ length: 4 }, () => attempt.run({ onStart: () => {} })))
    ).map(({ code }) => code)
    figures.faults += codes.length
    for (const code of codes) expect([0, 5]).toContain(code)
    // A run that got the lock later found everything done, so no search was sent twice.
    expect(repeatedSearches(attempt.sandbox.requests)).toBe(0)
    await exits(0, attempt.run())
    await expectSameResult(attempt, { scenario: slow, clean, figures, about: 'several', interruptions: 0 })
    expect(await lockFiles(attempt)).toEqual([])
  })
})

type Holder = (signal: NodeJS.Signals) => void

/** Does the work while a run holds the lock and waits for a response that never comes. */
async function whileHeld(
  work: (attempt: Trial, holder: Holder, ended: Promise<Ended>) => Promise<void>,
): Promise<void> {
  const faults: Fault[] = [{ kind: 'hang', requests: [4, 5] }]
  await trial({ ...EXPORT, sandbox: { ...EXPORT.sandbox, faults } }, async (attempt) => {
    let holder: Holder = () => {}
    const ended = attempt.run({ onStart: (kill) => (holder = kill) })
    while (attempt.sandbox.requests.length < 5) await delay(5)
    figures.faults++
    try {
      await work(attempt, holder, ended)
    } finally {
      holder('SIGKILL')
      await ended
    }
  })
}

async function keepKilled(folder: string): Promise<void> {
  const faults: Fault[] = [{ kind: 'hang', times: 1 }]
  await trial({ ...EXPORT, sandbox: { ...EXPORT.sandbox, faults } }, async (attempt) => {
    await attempt.run({
      onStart: async (kill) => {
        while (!attempt.sandbox.requests.some(({ kind }) => kind === 'search')) await delay(5)
        kill('SIGKILL')
      },
    })
    figures.kills++
    await cp(attempt.workspace.output, folder, { recursive: true })
  })
}

/** Changes the lock file of a killed run, and does the work. */
async function withLockFile(change: object, work: (attempt: Trial) => Promise<void>): Promise<void> {
  await trial(EXPORT, async (attempt) => {
    await cp(killed, attempt.workspace.output, { recursive: true })
    const [name = ''] = await lockFiles(attempt)
    const folder = join(attempt.workspace.output, '_state')
    const [entry = ''] = (await readFile(join(folder, name), 'utf8')).split('\n')
    const changed = JSON.stringify({ ...JSON.parse(entry), ...change })
    await writeFile(join(folder, 'lock.000000000001'), `${changed}\n`)
    await rm(join(folder, name))
    await rename(join(folder, name.replace('lock', 'open')), join(folder, 'open.000000000001'))
    await work(attempt)
  })
}

async function lockFiles({ workspace }: Trial): Promise<string[]> {
  return (await readdir(join(workspace.output, '_state'))).filter((name) => name.startsWith('lock.'))
}
