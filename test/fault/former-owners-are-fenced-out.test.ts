import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { concurrently, diskFault, type Ended, onAnotherMachine, treeHashes, untilStopped } from './support.ts'
import {
  ENDS,
  expectSameResult,
  sampledCalls,
  scenario,
  type Trial,
  takeOver,
  trial,
  type Undisturbed,
  undisturbed,
} from './trial.ts'

const EXPORT = scenario({ format: 'csv' })

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
})

// The state of a process is read from /proc.
describe.skipIf(process.platform !== 'linux')('a run of another machine that was taken over', () => {
  test('changes nothing when it continues, wherever it stopped', async () => {
    const stops = some(sampledCalls(clean.calls, ENDS), 1)
    expect(stops.length).toBeGreaterThan(THOROUGH ? 3 : 0)
    await concurrently(stops, (number) => {
      const about = `stopped before call ${number}: ${clean.calls[number - 1]}`
      // When it wakes up, either everything is done or half of it.
      const maxRequests = number % 2 === 0 ? null : 3
      return trial(EXPORT, async (attempt) => {
        const { stopped, resume, ended } = await stopAt(attempt, number)
        // Calls of the two partitions interleave, so the run may end before this one.
        if (stopped) {
          await takeOver(attempt, maxRequests)
          const [before, log] = [await dataHashes(attempt), await logOf(attempt)]
          resume()
          const late = await ended
          expect([0, 5], `${about}\n${late.stderr}`).toContain(late.code)
          // With exit 0 it had no lock file yet, so it ran like any other.
          if (late.code === 5) {
            expect(late.stderr, about).toMatch(/taken this pipeline over|holds this pipeline/)
            expect(await dataHashes(attempt), about).toEqual(before)
            // What it appends to its own file of the log comes behind the end that counts.
            for (const [name, bytes] of await logOf(attempt))
              expect(bytes.subarray(0, log.get(name)?.length ?? 0), about).toEqual(log.get(name))
          }
        }
        expect(await attempt.runHere(), about).toMatchObject({ status: 'complete', error: null })
        await expectWhole(attempt, about)
      })
    })
  })

  test.runIf(THOROUGH)('does no harm when it wakes up during the other run', async () => {
    const slow = { ...EXPORT, sandbox: { ...EXPORT.sandbox, latencyMs: 20 } }
    // The names of commits, of sealed shards and of published ones.
    const sampled = sampledCalls(clean.calls, ENDS).filter((number) =>
      /^(?:(?:rename|write) _state\/(?:log|sealed)|link credentials)\//.test(clean.calls[number - 1]!),
    )
    // At the last one everything is on the disk but the summary page.
    const stops = [...some(sampled, 1), 'rename _SUCCESS', 'rename _report.html']
    expect(sampled.length).toBeGreaterThan(2)
    let awake = 0
    await concurrently(stops, (call) =>
      trial(slow, async (attempt) => {
        const { stopped, resume, ended } = await stopAt(attempt, call)
        if (!stopped) return
        const lockFiles = async () =>
          (await readdir(join(attempt.workspace.output, '_state'))).filter((name) => name.startsWith('lock.'))
        const [lock] = await lockFiles()
        const seen = attempt.sandbox.requests.length
        let isOver = false
        const other = takeOver(attempt, null).finally(() => (isOver = true))
        // A request that the stopped run has sent may be seen only now.
        const hasTakenOver = async () =>
          attempt.sandbox.requests.length > seen + (Number(call) % 4 || 0) &&
          !(await lockFiles()).includes(lock!)
        while (!isOver && !(await hasTakenOver())) await delay(1)
        resume()
        await other
        const late = await ended
        awake++
        expect(late.code, late.stderr).toBe(5)
        await expectWhole(attempt, `awake again at call ${call}`)
      }),
    )
    expect(awake).toBeGreaterThan(0)
  })
})

type Stopped = { readonly stopped: boolean; resume(): void; readonly ended: Promise<Ended> }

/** Starts a run of another machine that stops before a call that changes files. @param call its number, or what it is listed as */
async function stopAt(attempt: Trial, call: number | string): Promise<Stopped> {
  let send: (signal: NodeJS.Signals) => void = () => {}
  let ended: Promise<Ended>
  const stopped = await new Promise<boolean>((resolve) => {
    ended = attempt.run({
      env: onAnotherMachine(diskFault(attempt.workspace.output, `stop:${call}`)),
      onStart(kill, pid) {
        send = kill
        resolve(untilStopped(pid))
      },
    })
  })
  return { stopped, resume: () => send('SIGCONT'), ended: ended! }
}

async function dataHashes({ workspace }: Trial): Promise<Map<string, string>> {
  const all = [...(await treeHashes(workspace.output))].filter(
    ([path]) => !/^_state\/(?:lock|open)\./.test(path),
  )
  return new Map(all.map(([path, digest]) => [path, path.startsWith('_state/log/') ? 'see logOf' : digest]))
}

async function logOf({ workspace }: Trial): Promise<ReadonlyMap<string, Buffer>> {
  const folder = join(workspace.output, '_state/log')
  return new Map(
    await Promise.all(
      (await readdir(folder)).map(async (name) => [name, await readFile(join(folder, name))] as const),
    ),
  )
}

async function expectWhole(attempt: Trial, about: string): Promise<void> {
  const interruptions = Number.POSITIVE_INFINITY
  await expectSameResult(attempt, { scenario: EXPORT, clean, about, interruptions })
  await exits(0, attempt.command('verify'))
  const left = [...(await treeHashes(join(attempt.workspace.output, '_state'))).keys()]
  expect(left, about).toEqual(['checkpoint.jsonl', 'log', 'sealed'])
}
