import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { random } from '../support/random.ts'
import { exits } from '../support/run-cli.ts'
import type { Fault, LoggedRequest } from '../support/sandbox.ts'
import { cases, seedOf, some } from '../support/thorough.ts'
import { faultFigures } from './figures.ts'
import { missingRows, rowsOf } from './rows.ts'
import { shardHashes } from './support.ts'
import { type Scenario, scenario, type Trial, trial, type Undisturbed, undisturbed } from './trial.ts'

const figures = faultFigures('state damaged while a run goes on')

const KINDS = [
  { what: 'an unfinished export', partitionBy: '[query, window]', redo: false },
  { what: 'an unfinished export', partitionBy: 'none', redo: false },
  { what: 'an unfinished --redo', partitionBy: '[query, window]', redo: true },
] as const

const DAMAGES: readonly (readonly [name: string, damage: (path: string, draw: () => number) => void])[] = [
  [
    'flips a bit',
    (path, draw) => {
      const bytes = readFileSync(path)
      if (bytes.length > 0) bytes[Math.floor(draw() * bytes.length)]! ^= 1 << Math.floor(draw() * 8)
      writeFileSync(path, bytes)
    },
  ],
  ['cuts it', (path, draw) => truncateSync(path, Math.floor(draw() * readFileSync(path).length))],
  ['removes it', (path) => rmSync(path, { force: true })],
]

/** All files of the state. */
function stateFiles(output: string): string[] {
  return readdirSync(join(output, '_state'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

describe.each(some(KINDS, 1))('during $what, partition_by $partitionBy:', ({ partitionBy, redo }) => {
  const export_ = scenario({ format: 'csv', partitionBy })
  let clean: Undisturbed
  let unfinished: string

  beforeAll(async () => {
    clean = await undisturbed(export_)
    await trial(export_, async ({ run, workspace }) => {
      if (redo) expect((await run()).code).toBe(0)
      const args = redo ? ['--redo', '*', '--max-requests', '5'] : ['--max-requests', '5']
      await exits(4, run({ args }))
      unfinished = await mkdtemp(join(tmpdir(), 'spillway-kept-'))
      await cp(workspace.output, unfinished, { recursive: true })
    })
  })

  afterAll(() => rm(unfinished, { recursive: true, force: true }))

  test.each(DAMAGES)('something %s, and exit 0 means the right rows', async (_, damage) => {
    for (let number = 1; number <= cases(60, 1); number++) {
      const seed = 1000 * seedOf(0) + number
      const draw = random(seed)
      await damagedAt(
        export_,
        unfinished,
        1 + (seed % 3),
        (output) => {
          const files = stateFiles(output)
          const file = files[Math.floor(draw() * files.length)]!
          damage(file, draw)
          return `seed ${seed}, ${file.slice(output.length)}`
        },
        (attempt, about) => expectNoWrongRows(attempt, about, clean, redo),
      )
    }
  })

  test('all commits are removed while the run waits for its first response', async () => {
    await damagedAt(
      export_,
      unfinished,
      1,
      (output) => {
        for (const file of stateFiles(output)) if (/_state\/log\/\d+$/.test(file)) rmSync(file)
        return 'commits'
      },
      (attempt, about) => expectNoWrongRows(attempt, about, clean, redo),
    )
  })
})

/** Runs a copy of an unfinished export, and damages it when a request has come. */
async function damagedAt(
  export_: Scenario,
  unfinished: string,
  request: number,
  damage: (output: string) => string,
  check: (attempt: Trial, about: string) => Promise<void>,
): Promise<void> {
  let output = ''
  let about = 'nothing'
  const when = ({ ordinal }: LoggedRequest): boolean => {
    if (ordinal === request) about = damage(output)
    return false
  }
  const faults: Fault[] = [{ kind: 'hang', when }]
  await trial({ ...export_, sandbox: { ...export_.sandbox, faults } }, async (attempt) => {
    output = attempt.workspace.output
    await cp(unfinished, output, { recursive: true })
    const ended = await attempt.run()
    figures.faults++
    await check({ ...attempt, run: async () => ended }, about)
    if (ended.code === 0) return
    // The next runs repair it, or go on refusing.
    for (let times = 0; times < 2; times++) {
      const next = await attempt.run()
      await check({ ...attempt, run: async () => next }, `${about}, run again`)
      if (next.code === 0) return
      expect(next.stderr, about).toMatch(/damaged|checkpoint|missing|holds|lock/i)
    }
  })
}

async function expectNoWrongRows(
  { run, command, workspace }: Trial,
  about: string,
  clean: Undisturbed,
  redo: boolean,
): Promise<void> {
  const { code, stderr } = await run()
  expect(stderr, about).not.toMatch(/^\s+at |unexpected error/m)
  const rows = await rowsOf(workspace.output)
  // Nobody has lost what was published before.
  if (redo) expect(missingRows(clean.rows, rows), `${about}: exit ${code}\n${stderr}`).toBe(0)
  if (code !== 0) return
  figures.exports++
  const lost = missingRows(clean.rows, rows)
  const duplicated = missingRows(rows, clean.rows)
  figures.lost += lost
  figures.duplicated += duplicated
  expect({ lost, duplicated }, `${about}\n${stderr}`).toEqual({ lost: 0, duplicated: 0 })
  expect((await shardHashes(workspace.output)).size, about).toBeGreaterThan(0)
  const verified = JSON.parse((await command('verify', { args: ['--json'] })).stdout)
  // The checkpoint itself may be what was damaged after it was last read.
  const others = verified.problems.filter(({ path }: { path: string }) => !path.startsWith('_'))
  expect(others, about).toEqual([])
}
