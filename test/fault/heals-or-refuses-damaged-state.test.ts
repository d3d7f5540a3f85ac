import { rmSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Fault, LoggedRequest } from '../../src/sandbox/index.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  copyShard,
  cutLastLine,
  type Damage,
  flip,
  flipInLine,
  folderForJournal,
  header,
  JOURNAL,
  leaveTemporaryFiles,
  lines,
  openFile,
  upToSeal,
} from './damage.ts'
import { faultFigures } from './figures.ts'
import { type RunArgs, treeHashes } from './support.ts'
import { expectSameResult, scenario, type Trial, trial, type Undisturbed, undisturbed } from './trial.ts'

const figures = faultFigures('damaged, missing or foreign state')

const EXPORT = scenario({ format: 'parquet', partitionBy: '[query, window]' })
const MIDDLE = 'query=domain.scatterholt.com/import_window=2024-01-09'
const SHARD = 'credentials/query=domain.quillmere.net/import_window=2024-01-01/part-00000.parquet'

/** Unfinished: published shards, rows in the WAL of an open one, pages missing. */
let partial: string
/** Everything is exported. */
let complete: string
let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
  partial = await keep({ args: ['--max-requests', '5'] }, 4)
  complete = await keep({}, 0)
})

afterAll(async () => {
  for (const folder of [partial, complete]) await rm(folder, { recursive: true, force: true })
})

const HEALED_UNFINISHED: readonly (readonly [what: string, damage: Damage])[] = [
  ['a last journal line that lacks its end', cutLastLine((length) => length - 1)],
  ['a last journal line of which half is there', cutLastLine((length) => length >> 1)],
  ['a last journal line of which one byte is there', cutLastLine(() => 1)],
  ['a flipped bit in the last journal line', flipInLine(-1)],
  ['a journal that lost its last lines', lines((all) => all.slice(0, -4))],
  ['a journal that lost all but its first page', lines((all) => all.slice(0, 4))],
  ['a flipped bit at the beginning of an open WAL', openFile('.log', (path) => flip(path, () => 3))],
  ['a flipped bit in the middle of an open WAL', openFile('.log', (path) => flip(path, (size) => size >> 1))],
  ['a flipped bit at the end of an open WAL', openFile('.log', (path) => flip(path, (size) => size - 1))],
  ['an open WAL that lost its end', openFile('.log', (path) => truncate(path, 100))],
  ['an open WAL that is missing', openFile('.log', (path) => rm(path))],
  [
    'files of open shards that are all missing',
    (output) => rm(join(output, '_state/open'), { recursive: true }),
  ],
  ['temporary files that a crash left', leaveTemporaryFiles],
  ['a manifest that is no JSON', (output) => writeFile(join(output, '_manifest.json'), '{"version":')],
  ['a manifest that is missing', (output) => rm(join(output, '_manifest.json'))],
  ['a shard that is not in the checkpoint', copyShard],
]

describe('is healed without loss:', () => {
  test.each(some(HEALED_UNFINISHED, 6))('%s', async (_, damage) => {
    await from(partial, async (attempt) => {
      await damage(attempt.workspace.output)
      await expectHealed(attempt)
    })
  })

  test.each<[string, Damage]>([
    ['a shard that is not in the checkpoint', copyShard],
    ['published shards whose entries the journal lost', upToSeal()],
    ['entries lost from the middle of a query on, which is then requested in other pages', upToSeal(MIDDLE)],
    ['a data set that is missing', (output) => rm(output, { recursive: true })],
    ['a _SUCCESS that is missing', (output) => rm(join(output, '_SUCCESS'))],
  ])('in a complete export: %s', async (_, damage) => {
    await from(complete, async (attempt) => {
      await damage(attempt.workspace.output)
      await expectHealed(attempt)
    })
  })
})

type Refusal = readonly [what: string, code: number, message: RegExp, damage: Damage]

const REFUSED_UNFINISHED: readonly Refusal[] = [
  ['a flipped bit in the first journal line', 1, /Line 1 of the checkpoint/, flipInLine(0)],
  ['a flipped bit in a middle journal line', 1, /Line 4 of the checkpoint/, flipInLine(3)],
  ['a journal line that is missing', 1, /Line 4 of the checkpoint/, lines((all) => all.toSpliced(3, 1))],
  [
    'a journal line that is doubled',
    1,
    /Line 5 of the checkpoint/,
    lines((all) => all.toSpliced(4, 0, all[3]!)),
  ],
  [
    'a journal cut in its first line',
    1,
    /not a checkpoint of spillway: its first line is not valid/,
    lines(([first = '']) => [first.slice(0, 9)]),
  ],
  [
    'a foreign file with the name of the journal',
    1,
    /not a checkpoint of spillway: its first line is not valid/,
    (output) => writeFile(join(output, JOURNAL), '{"kind":"mine"}\n'),
  ],
  [
    'a lock file that can not be read',
    1,
    /lock file can not be read/,
    (output) => writeFile(join(output, '_state/lock.0123456789ab'), '{'),
  ],
]

const REFUSED_COMPLETE: readonly Refusal[] = [
  ['a journal that is missing', 1, /a manifest but no checkpoint/, (output) => rm(join(output, JOURNAL))],
  ['a folder in place of the journal', 1, /path is a folder, not a file/, folderForJournal],
  ['the checkpoint of another pipeline', 2, /belongs to the pipeline "other"/, header('"crash"', '"other"')],
  [
    'the checkpoint of a newer version',
    2,
    /another version of spillway/,
    header('"version":3', '"version":4'),
  ],
  ['a finished shard that is missing', 1, /finished shard is missing/, (output) => rm(join(output, SHARD))],
  [
    'a finished shard that is short',
    1,
    /finished shard holds/,
    (output) => truncate(join(output, SHARD), 1000),
  ],
  [
    'a missing shard beside a torn line',
    1,
    /finished shard is missing/,
    async (output) => {
      await rm(join(output, SHARD))
      await cutLastLine(() => 9)(output)
    },
  ],
]

describe('is refused with every file unchanged:', () => {
  test.each(REFUSED_UNFINISHED)('%s', (_, code, message, damage) =>
    expectRefused(partial, code, message, damage),
  )

  test.each(REFUSED_COMPLETE)('in a complete export: %s', (_, code, message, damage) =>
    expectRefused(complete, code, message, damage),
  )
})

test('a finished shard with a flipped bit is named by verify', async () => {
  await from(complete, async ({ command, workspace }) => {
    await flip(join(workspace.output, SHARD), (size) => size >> 1)
    const verified = await command('verify', { args: ['--json'] })
    figures.faults++
    expect(verified.code).toBe(1)
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: false, problems: [{ path: SHARD }] })
  })
})

test('a file in place of the folder is refused and left alone', async () => {
  await trial(EXPORT, async ({ run, workspace }) => {
    await writeFile(workspace.output, 'mine')
    for (const args of [[], ['--fresh', '--yes']]) {
      const refused = await run({ args })
      figures.faults++
      expect(refused.code, refused.stderr).toBe(2)
      expect(refused.stderr).toContain('A part of the path is a file, not a folder')
      expect(await readFile(workspace.output, 'utf8')).toBe('mine')
    }
  })
})

// Root may write to read-only folders.
test.skipIf(process.getuid?.() === 0)('a read-only folder is refused', async () => {
  await trial(EXPORT, async ({ run, workspace }) => {
    await mkdir(workspace.output, { mode: 0o500 })
    const refused = await run()
    figures.faults++
    expect(refused.code, refused.stderr).toBe(2)
    expect(refused.stderr).toContain('not permitted')
    expect(await readdir(workspace.output)).toEqual([])
  })
})

describe('a folder that vanishes during a run', () => {
  test.each(some([2, 4, 6, 8], 2))('at search %i never makes it look complete', async (search) => {
    let output = ''
    const vanish = ({ ordinal }: LoggedRequest): boolean => {
      if (ordinal === search) rmSync(output, { recursive: true, force: true })
      return false
    }
    const faults: Fault[] = [{ kind: 'hang', when: vanish }]
    await trial({ ...EXPORT, sandbox: { ...EXPORT.sandbox, faults } }, async (attempt) => {
      output = attempt.workspace.output
      const stopped = await attempt.run()
      figures.faults++
      expect(stopped.code, stopped.stderr).toBe(1)
      expect(stopped.stderr).toMatch(/missing|removed/)
      expect([...(await treeHashes(output)).keys()]).not.toContain('_SUCCESS')
      await expectHealed(attempt)
    })
  })
})

async function expectHealed(attempt: Trial): Promise<void> {
  const healed = await attempt.run()
  figures.faults++
  expect(healed.code, healed.stderr).toBe(0)
  // Damaged pages are requested again, so requests are not limited here.
  const interruptions = Number.POSITIVE_INFINITY
  await expectSameResult(attempt, { scenario: EXPORT, clean, figures, about: 'healed', interruptions })
  const names = [...(await treeHashes(attempt.workspace.output)).keys()]
  expect(names.filter((name) => name.startsWith('_state/open'))).toEqual([])
  await expectFreshStart(attempt)
}

/** From any state, `--fresh --yes` starts over. */
async function expectFreshStart(attempt: Trial): Promise<void> {
  if (!THOROUGH && figures.faults % 4 > 0) return
  expect(await attempt.runHere({ fresh: true })).toMatchObject({ status: 'complete', error: null })
  const expected = {
    scenario: EXPORT,
    clean,
    figures,
    about: 'fresh',
    interruptions: Number.POSITIVE_INFINITY,
  }
  await expectSameResult(attempt, expected)
}

async function expectRefused(kept: string, code: number, message: RegExp, damage: Damage): Promise<void> {
  await from(kept, async (attempt) => {
    const { output } = attempt.workspace
    await damage(output)
    const before = await treeHashes(output)
    const refused = await attempt.run()
    figures.faults++
    expect(refused.code, refused.stderr).toBe(code)
    expect(refused.stderr).toMatch(message)
    expect(refused.stderr).not.toMatch(/^\s+at |unexpected error/m)
    expect(await treeHashes(output)).toEqual(before)
    expect(attempt.sandbox.requests).toHaveLength(0)
    await expectFreshStart(attempt)
  })
}

/** Runs an export once and keeps its files. @returns the folder */
async function keep(settings: Partial<RunArgs>, code: number): Promise<string> {
  return trial(EXPORT, async ({ run, workspace }) => {
    const ended = await run(settings)
    expect(ended.code, ended.stderr).toBe(code)
    const folder = `${workspace.folder}-kept`
    await cp(workspace.output, folder, { recursive: true })
    return folder
  })
}

/** Gives the work a copy of the kept export. */
function from(kept: string, work: (attempt: Trial) => Promise<void>): Promise<void> {
  return trial(EXPORT, async (attempt) => {
    await cp(kept, attempt.workspace.output, { recursive: true })
    await work(attempt)
  })
}
