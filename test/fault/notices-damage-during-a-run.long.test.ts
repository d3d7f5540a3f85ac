import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { random } from '../support/random.ts'
import type { Fault, LoggedRequest } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { endOfLine } from './damage.ts'
import { faultFigures } from './figures.ts'
import { concurrently, diskFault, type Ended } from './support.ts'
import { expectSameResult, scenario, type Trial, trial, undisturbed } from './trial.ts'

const figures = faultFigures('state that was damaged during a run')

const STRIKES = Array.from({ length: 60 }, (_, seed) => seed)
/** The first of them strikes a commit. */
const STRIKES_TODAY = some(STRIKES, 1)
const KINDS = ['flip', 'flip', 'cut', 'remove'] as const

const DAMAGE =
  /does not match|does not follow|is missing|are lost or changed|changed or vanished|is followed by nothing|not a checkpoint|shard holds|no checkpoint/

/** Damages a file of the state: a commit, the checkpoint or a sealed shard. @returns what was done; null: no file */
function strike(output: string, seed: number): string | null {
  const draw = random(seed)
  const state = join(output, '_state')
  const pick = <T>(all: readonly T[]): T | undefined => all[Math.floor(draw() * all.length)]
  const under = (folder: string): string[] => namesIn(join(state, folder)).map((name) => join(folder, name))
  // Whichever folder is chosen, if it holds anything.
  const groups = [under('log'), under('log'), under('sealed'), ['checkpoint.jsonl']]
  const name = pick(pick(groups.filter((names) => names.length > 0)) ?? [])
  const kind = pick(KINDS)!
  if (name === undefined) return null
  const path = join(state, name)
  try {
    const bytes = readFileSync(path)
    // Half of them in the bytes behind the entries.
    const start = draw() < 0.5 ? 0 : Math.min(endOfLine(bytes), bytes.length - 1)
    const at = start + Math.floor(draw() * (bytes.length - start))
    bytes[at]! ^= 1
    if (kind === 'remove') rmSync(path)
    else writeFileSync(path, kind === 'cut' ? bytes.subarray(0, at) : bytes)
    return `${kind} ${name} at ${at} of ${bytes.length}`
  } catch {
    // The run has just removed or published it.
    return null
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

const SETTINGS = [
  { format: 'parquet', partitionBy: '[query, window]' },
  { format: 'csv', partitionBy: 'none' },
] as const

describe.each(some(SETTINGS, 1))(
  'state of a $format export by $partitionBy that is damaged during a run',
  (settings) => {
    const export_ = scenario(settings)
    const clean = undisturbed(export_)

    /**
     * What a run calls complete is right, whatever happened meanwhile; and so is what the next runs make of it, unless they
     * name the damage.
     */
    async function expectNoHarm(attempt: Trial, first: Ended, about: string): Promise<void> {
      const interruptions = Number.POSITIVE_INFINITY
      const expected = { scenario: export_, clean: await clean, figures, about, interruptions }
      let ended = first
      for (let tries = 0; tries < 3; tries++) {
        expect([0, 1, ...(tries === 0 ? [null] : [])], `${about}\n${ended.stderr}`).toContain(ended.code)
        expect(ended.stderr, about).not.toMatch(/^\s+at |unexpected error/m)
        if (ended.code === 1) expect(ended.stderr, about).toMatch(DAMAGE)
        if (ended.code === 0) await expectSameResult(attempt, expected)
        ended = await attempt.run()
      }
      if (ended.code === 0) return expectSameResult(attempt, expected)
      // What is refused is not lost: the export can begin anew.
      expect(ended.code, `${about}\n${ended.stderr}`).toBe(1)
      expect(ended.stderr, about).toMatch(DAMAGE)
      expect(await attempt.runHere({ fresh: true }), about).toMatchObject({ status: 'complete', error: null })
      await expectSameResult(attempt, expected)
    }

    // Without a kill `state-is-damaged-during-a-run` does the same, in one process.
    test.runIf(THOROUGH)('while it awaits a response, to be killed later or not', async () => {
      await concurrently(STRIKES_TODAY, async (seed) => {
        let about = `seed ${seed}: nothing`
        let kill: (signal: NodeJS.Signals) => void = () => {}
        let process = 0
        let output = ''
        const search = 3 + (seed % 5)
        // Every other ten.
        const killedAt = Math.floor(seed / 10) % 2 === 0 ? Number.POSITIVE_INFINITY : search + 1
        const when = ({ ordinal }: LoggedRequest): boolean => {
          if (ordinal === search) {
            // It moves no file between two steps of the damage.
            kill('SIGSTOP')
            while (isGoingOn(process));
            about = `seed ${seed}: ${strike(output, seed)} at search ${search}`
            kill('SIGCONT')
          }
          if (ordinal === killedAt) kill('SIGKILL')
          return false
        }
        const faults: Fault[] = [{ kind: 'hang', when }]
        await trial({ ...export_, sandbox: { ...export_.sandbox, faults } }, async (attempt) => {
          output = attempt.workspace.output
          const ended = await attempt.run({
            onStart: (send, pid) => {
              kill = send
              process = pid
            },
          })
          figures.faults++
          if (ended.signal === 'SIGKILL') figures.kills++
          await expectNoHarm(attempt, ended, about)
        })
      })
    })

    test('between any two calls of the disk', async () => {
      const { calls } = await clean
      await concurrently(STRIKES_TODAY, async (seed) => {
        const call = 1 + Math.floor(random(1000 + seed)() * calls.length)
        await trial(export_, async (attempt) => {
          let about = `seed ${seed}: nothing`
          const ended = await attempt.run({
            env: diskFault(attempt.workspace.output, `stop:${call}`),
            onStart: async (send, pid) => {
              if (!(await isStopped(pid))) return
              about = `seed ${seed}: ${strike(attempt.workspace.output, seed)} before call ${call}`
              send('SIGCONT')
            },
          })
          figures.faults++
          await expectNoHarm(attempt, ended, about)
        })
      })
    })
  },
)

/** Waits until the process is stopped. @returns false: it ended before */
async function isStopped(pid: number): Promise<boolean> {
  while (isGoingOn(pid)) await delay(2)
  return stateOf(pid) === 'T'
}

/** Whether the process has neither stopped nor ended. */
function isGoingOn(pid: number): boolean {
  return !'TZX'.includes(stateOf(pid))
}

/** The letter by which Linux names the state of a process: T for stopped, Z for ended, X for none. */
function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat[stat.lastIndexOf(')') + 2]!
  } catch {
    return 'X'
  }
}
