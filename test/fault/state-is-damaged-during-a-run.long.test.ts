import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { random } from '../support/random.ts'
import { exits } from '../support/run-cli.ts'
import type { Fault, LoggedRequest } from '../support/sandbox.ts'
import { cases, seedOf, some } from '../support/thorough.ts'
import { endOfLine } from './damage.ts'
import { missingRows, rowsOf } from './rows.ts'
import { concurrently, diskFault, type Ended, shardHashes, untilStopped } from './support.ts'
import { expectSameResult, type Scenario, scenario, type Trial, trial, undisturbed } from './trial.ts'

const KINDS = [
  { what: 'an unfinished export', settings: {}, redo: false },
  { what: 'an unfinished export', settings: { partitionBy: 'none' }, redo: false },
  { what: 'an unfinished --redo', settings: {}, redo: true },
] as const

type Damage = (path: string, draw: () => number) => void

const DAMAGES: readonly (readonly [name: string, damage: Damage])[] = [
  [
    'flips a bit',
    (path, draw) => {
      const bytes = readFileSync(path)
      // Half of them in the bytes behind the entries of a commit.
      const start = draw() < 0.5 ? 0 : Math.min(endOfLine(bytes), bytes.length - 1)
      if (bytes.length > 0)
        bytes[start + Math.floor(draw() * (bytes.length - start))]! ^= 1 << Math.floor(draw() * 8)
      writeFileSync(path, bytes)
    },
  ],
  ['cuts it', (path, draw) => truncateSync(path, Math.floor(draw() * readFileSync(path).length))],
  ['removes it', (path) => rmSync(path, { force: true })],
]

/**
 * All files of the state. Those in the staging directory are none yet, and one of them may be a file of quarantine, which
 * has no checksum: `docs/guarantees.md` names that limit.
 */
function stateFiles(output: string): string[] {
  return readdirSync(join(output, '_state'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/[\\/]open\.[^\\/]*$/.test(entry.parentPath))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

function strike(output: string, damage: Damage, draw: () => number): string {
  try {
    const files = stateFiles(output)
    const file = files[Math.floor(draw() * files.length)]!
    damage(file, draw)
    return file.slice(output.length)
  } catch {
    return 'nothing: it has just been removed or published'
  }
}

describe.each(KINDS)('during $what, $settings:', ({ settings, redo }) => {
  const export_ = scenario({ format: 'csv', ...settings })
  let unfinished: string

  beforeAll(async () => {
    await trial(export_, async ({ run, workspace }) => {
      if (redo) expect((await run()).code).toBe(0)
      const args = redo ? ['--redo', '*', '--max-requests', '5'] : ['--max-requests', '5']
      await exits(4, run({ args }))
      unfinished = scratchFolder()
      await cp(workspace.output, unfinished, { recursive: true })
    })
  })

  /** Runs a copy of it, damages that when a request has come, and perhaps kills the run at the next one. */
  async function damagedAt(request: number, isKilled: boolean, damage: (output: string) => string) {
    let output = ''
    let about = 'nothing'
    let kill: ((signal: NodeJS.Signals) => void) | null = null
    const when = ({ ordinal }: LoggedRequest): boolean => {
      if (ordinal === request) about = damage(output)
      if (ordinal > request) kill?.('SIGKILL')
      return false
    }
    const faults: Fault[] = [{ kind: 'hang', when }]
    await trial({ ...export_, sandbox: { ...export_.sandbox, faults } }, async (attempt) => {
      output = attempt.workspace.output
      await cp(unfinished, output, { recursive: true })
      const ended = await attempt.run(isKilled ? { onStart: (send) => (kill = send) } : {})
      kill = null
      await expectNoHarm(attempt, ended, about, export_, redo)
    })
  }

  test.each(DAMAGES)('something %s, and exit 0 means the right rows', async (_, damage) => {
    for (let number = 1; number <= cases(60, 1); number++) {
      const seed = 1000 * seedOf(0) + number
      await damagedAt(1 + (seed % 3), number % 4 === 0, (output) => {
        return `seed ${seed}, ${strike(output, damage, random(seed))}`
      })
    }
  })

  test('all commits are removed while the run waits for its first response', async () => {
    await damagedAt(1, false, (output) => {
      for (const file of stateFiles(output)) if (/_state\/log\/\d+$/.test(file)) rmSync(file)
      return 'commits'
    })
  })
})

test('between any two calls of the disk, exit 0 means the right rows', async () => {
  const export_ = scenario({ format: 'parquet' })
  const { calls } = await undisturbed(export_)
  const seeds = some(
    Array.from({ length: 60 }, (_, seed) => seed),
    1,
  )
  await concurrently(seeds, async (seed) => {
    const draw = random(1000 + seed)
    const call = 1 + Math.floor(draw() * calls.length)
    await trial(export_, async (attempt) => {
      const { output } = attempt.workspace
      let about = 'nothing'
      const ended = await attempt.run({
        env: diskFault(output, `stop:${call}`),
        onStart: async (send, pid) => {
          if (!(await untilStopped(pid))) return
          about = `seed ${seed}, ${strike(output, DAMAGES[seed % 3]![1], draw)} before call ${call}`
          send('SIGCONT')
        },
      })
      await expectNoHarm(attempt, ended, about, export_, false)
    })
  })
})

const DAMAGE =
  /does not match|does not follow|is missing|are lost or changed|has changed since|changed or vanished|is followed by nothing|not a checkpoint|shard holds|no checkpoint|named by nothing|older than the data set|to name it|lock file|damaged|not what was written/

/** What a run calls complete is right; so is what the next ones make of it, unless they name the damage. */
async function expectNoHarm(
  attempt: Trial,
  first: Ended,
  about: string,
  export_: Scenario,
  redo: boolean,
): Promise<void> {
  const clean = await undisturbed(export_)
  const interruptions = Number.POSITIVE_INFINITY
  const expectWhole = async (): Promise<void> => {
    if (!redo) {
      // A shard whose commit was cut off is an orphan, and its path is not used again.
      const scenario = { ...export_, sameBytes: false }
      await expectSameResult(attempt, { scenario, clean, about, interruptions })
      const digests = (shards: ReadonlyMap<string, string>) => [...shards.values()].sort()
      const found = digests(await shardHashes(attempt.workspace.output))
      if (export_.sameBytes) expect(found, about).toEqual(digests(clean.shards))
      return
    }
    expect(missingRows(await rowsOf(attempt.workspace.output), clean.rows), about).toBe(0)
  }
  let ended = first
  for (let tries = 0; tries < 3; tries++) {
    expect(ended.stderr, about).not.toMatch(/^\s+at |unexpected error/m)
    // Nobody has lost what was published before.
    if (redo) expect(missingRows(clean.rows, await rowsOf(attempt.workspace.output)), about).toBe(0)
    if (ended.code === 0) {
      await expectWhole()
      const verified = JSON.parse((await attempt.command('verify', { args: ['--json'] })).stdout)
      // The checkpoint itself may be what was damaged after it was last read.
      const others = verified.problems.filter(({ path }: { path: string }) => !path.startsWith('_'))
      return expect(others, about).toEqual([])
    }
    if (ended.signal !== 'SIGKILL') expect(ended.stderr, about).toMatch(DAMAGE)
    ended = await attempt.run()
  }
  // What is refused is not lost: the export can begin anew.
  expect(await attempt.runHere({ fresh: true }), about).toMatchObject({ status: 'complete', error: null })
  await expectWhole()
}
