import { renameSync, rmSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Fault, LoggedRequest } from '../support/sandbox.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import {
  bytesOfCommits,
  CHECKPOINT,
  change,
  commit,
  commitsIn,
  copyShard,
  type Damage,
  endOfLine,
  flipInLine,
  flipped,
  folderForCheckpoint,
  header,
  leaveTemporaryFiles,
  lines,
  restored,
} from './damage.ts'
import { faultFigures } from './figures.ts'
import { diskFault, type RunArgs, treeHashes } from './support.ts'
import { expectSameResult, scenario, type Trial, trial, type Undisturbed, undisturbed } from './trial.ts'

const figures = faultFigures('damaged, missing or foreign state')

const EXPORT = scenario({ format: 'parquet', partitionBy: '[query, window]' })
const SHARD = 'credentials/query=domain.quillmere.net/import_window=2024-01-01/part-00000.parquet'

/** Ended before everything was exported: published shards, rows of open ones in the log, pages missing. */
let partial: string
/** Killed before a shard got its name: no commit is in the checkpoint. */
let killed: string
/** Everything is exported. */
let complete: string
let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
  partial = await keep({ args: ['--max-requests', '5'] }, 4)
  const names = clean.calls.filter((call) => call.startsWith('link credentials'))
  killed = await keep((output) => ({ env: diskFault(output, `kill:${names[names.length >> 1]}`) }), null)
  complete = await keep({}, 0)
})

afterAll(async () => {
  for (const folder of [partial, killed, complete]) await rm(folder, { recursive: true, force: true })
})

const HEALED: readonly (readonly [what: string, kept: () => string, damage: Damage])[] = [
  [
    'rows in the log with a flipped bit at the beginning',
    () => partial,
    bytesOfCommits((all) => flipped(all, 0)),
  ],
  [
    'rows in the log with a flipped bit in the middle',
    () => partial,
    bytesOfCommits((all) => flipped(all, all.length >> 1)),
  ],
  [
    'rows in the log with a flipped bit at the end',
    () => partial,
    bytesOfCommits((all) => flipped(all, all.length - 1)),
  ],
  ['rows in the log that lost their end', () => partial, bytesOfCommits((all) => all.subarray(0, -100))],
  ['rows in the log that are missing', () => partial, commit(0, 'remove')],
  ['a log that is missing', () => partial, (output) => rm(join(output, '_state/log'), { recursive: true })],
  ['temporary files that a crash left', () => partial, leaveTemporaryFiles],
  [
    'a manifest that is no JSON',
    () => partial,
    (output) => writeFile(join(output, '_manifest.json'), '{"version":'),
  ],
  ['a manifest that is missing', () => partial, (output) => rm(join(output, '_manifest.json'))],
  ['a shard that is not in the checkpoint', () => partial, copyShard],
  ['the last commit missing after a kill', () => killed, commit(-1, 'remove')],
  [
    'the last commits missing after a kill',
    () => killed,
    async (output) => {
      for (const path of (await commitsIn(output)).slice(-4)) await rm(path)
    },
  ],
  ['rows damaged after a kill', () => killed, bytesOfCommits((all) => flipped(all, all.length >> 2))],
  [
    'all commits missing after a kill',
    () => killed,
    (output) => rm(join(output, '_state/log'), { recursive: true }),
  ],
]

describe('is healed without loss:', () => {
  test.each(some(HEALED, 3))('%s', async (_, kept, damage) => {
    await from(kept(), async (attempt) => {
      await damage(attempt.workspace.output)
      await expectHealed(attempt)
    })
  })

  const damages: readonly [string, Damage][] = [
    ['a shard that is not in the checkpoint', copyShard],
    ['the state of an earlier run, which did not know of later shards', restored(() => partial, '_state')],
    ['the checkpoint of an earlier run, whose rows have left the log', restored(() => partial, CHECKPOINT)],
    ['a data set that is missing', (output) => rm(output, { recursive: true })],
    ['a _SUCCESS that is missing', (output) => rm(join(output, '_SUCCESS'))],
  ]
  test.each(some(damages, 1))('in a complete export: %s', async (_, damage) => {
    await from(complete, async (attempt) => {
      await damage(attempt.workspace.output)
      await expectHealed(attempt)
    })
  })
})

type Refusal = readonly [what: string, code: number, message: RegExp, damage: Damage]

const REFUSED_UNFINISHED: readonly Refusal[] = [
  ['a flipped bit in the first line', 1, /Line 1 of the checkpoint|no.* checkpoint of/, flipInLine(0)],
  ['a flipped bit in a middle line', 1, /Line 4 of the checkpoint does not match/, flipInLine(3)],
  ['a flipped bit in the last line', 1, /Line \d+ of the checkpoint does not match/, flipInLine(-1)],
  [
    'a line that is missing',
    1,
    /Line 4 of the checkpoint does not follow/,
    lines((all) => all.toSpliced(3, 1)),
  ],
  [
    'a line that is doubled',
    1,
    /Line 5 of the checkpoint does not follow/,
    lines((all) => all.toSpliced(4, 0, all[3]!)),
  ],
  [
    'a checkpoint without its last line',
    1,
    /Line \d+ of the checkpoint is followed by nothing/,
    lines((all) => all.toSpliced(-2, 1)),
  ],
  [
    'a checkpoint that lost its end',
    1,
    /Line \d+ of the checkpoint does not match/,
    (output) => change(join(output, CHECKPOINT), (bytes) => bytes.subarray(0, -9)),
  ],
  [
    'a checkpoint cut in its first line',
    1,
    /not a checkpoint of spillway: its first line is not valid/,
    lines(([first = '']) => [first.slice(0, 9)]),
  ],
  [
    'a foreign file with the name of the checkpoint',
    1,
    /not a checkpoint of spillway: its first line is not valid/,
    (output) => writeFile(join(output, CHECKPOINT), '{"kind":"mine"}\n'),
  ],
  [
    'a lock file that cannot be read',
    1,
    /lock file cannot be read/,
    (output) => writeFile(join(output, '_state/lock.0123456789ab'), '{'),
  ],
]

const SEALED = '_state/sealed'

/** Edits the shard that waits for its name. */
const sealed = (edit: (bytes: Buffer) => Buffer): Damage => {
  return async (output) => {
    const names = await readdir(join(output, SEALED))
    for (const name of names) await change(join(output, SEALED, name), edit)
    expect(names).not.toHaveLength(0)
  }
}

const inLine = (part: number) => (bytes: Buffer) => flipped(bytes, Math.floor(part * (endOfLine(bytes) - 1)))

const REFUSED_KILLED: readonly Refusal[] = [
  ['a flipped bit in the first commit', 1, /commit does not match its checksum/, commit(0, inLine(0.5))],
  ['a flipped bit in a middle commit', 1, /commit does not match its checksum/, commit(3, inLine(0))],
  ['a flipped bit in the last commit', 1, /commit does not match its checksum/, commit(-1, inLine(0.9))],
  [
    'a commit cut in its entries',
    1,
    /commit does not match its checksum/,
    commit(-1, (bytes) => bytes.subarray(0, endOfLine(bytes) >> 1)),
  ],
  ['an empty commit', 1, /commit does not match its checksum/, commit(2, (bytes) => bytes.subarray(0, 0))],
  ['a missing commit', 1, /Commit \d+ of the log is missing/, commit(2, 'remove')],
  [
    'a commit in the place of another',
    1,
    /commit does not follow the commit before it/,
    async (output) => {
      const [, one, other] = await commitsIn(output)
      await cp(one!, other!)
    },
  ],
  [
    'a sealed shard with a flipped bit',
    1,
    /A sealed shard changed or vanished/,
    sealed((bytes) => flipped(bytes, bytes.length >> 1)),
  ],
  ['a sealed shard that is short', 1, /A shard is missing/, sealed((bytes) => bytes.subarray(0, -1))],
  [
    'sealed shards that are missing',
    1,
    /A shard is missing/,
    (output) => rm(join(output, SEALED), { recursive: true }),
  ],
]

const REFUSED_COMPLETE: readonly Refusal[] = [
  [
    'a checkpoint that is missing',
    1,
    /a manifest but no checkpoint/,
    (output) => rm(join(output, CHECKPOINT)),
  ],
  ['a folder in place of the checkpoint', 1, /path is a folder, not a file/, folderForCheckpoint],
  ['the checkpoint of another pipeline', 2, /belongs to the pipeline "other"/, header('"crash"', '"other"')],
  [
    'the checkpoint of a newer version',
    2,
    /another version of spillway/,
    header('"version":4', '"version":5'),
  ],
  ['a sealed shard that is missing', 1, /A shard is missing/, (output) => rm(join(output, SHARD))],
  ['a sealed shard that is short', 1, /A shard holds/, (output) => truncate(join(output, SHARD), 1000)],
]

describe('is refused with every file unchanged:', () => {
  test.each(some(REFUSED_UNFINISHED, 2))('%s', (_, code, message, damage) =>
    expectRefused(partial, code, message, damage),
  )

  test.each(some(REFUSED_KILLED, 3))('after a kill: %s', (_, code, message, damage) =>
    expectRefused(killed, code, message, damage),
  )

  test.each(some(REFUSED_COMPLETE, 2))('in a complete export: %s', (_, code, message, damage) =>
    expectRefused(complete, code, message, damage),
  )
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
  test.each(some([4, 2, 6, 8], 1))('at search %i never makes it look complete', async (search) => {
    let output = ''
    const vanish = ({ ordinal }: LoggedRequest): boolean => {
      if (ordinal !== search) return false
      // In one step: files that come meanwhile would keep a part of it.
      renameSync(output, `${output}.gone`)
      rmSync(`${output}.gone`, { recursive: true })
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
  const { output } = attempt.workspace
  const names = [...(await treeHashes(output)).keys()]
  expect(names.filter((name) => /^_state\/(?:open|sealed\/)/.test(name))).toEqual([])
  // Of the log only what fences out an owner that may still run.
  for (const path of await commitsIn(output))
    expect(await readFile(path, 'utf8')).toContain('{"kind":"claim"}')
  await expectFreshStart(attempt)
}

/** From any state, `--fresh --yes` starts over. */
async function expectFreshStart(attempt: Trial): Promise<void> {
  if (!THOROUGH && figures.faults % 12 > 0) return
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
async function keep(
  settings: Partial<RunArgs> | ((output: string) => Partial<RunArgs>),
  code: number | null,
): Promise<string> {
  return trial(EXPORT, async ({ run, workspace }) => {
    const ended = await run(typeof settings === 'function' ? settings(workspace.output) : settings)
    expect(ended.code, ended.stderr).toBe(code)
    const folder = `${workspace.folder}-kept`
    await cp(workspace.output, folder, {
      recursive: true,
      // What belongs to a killed process.
      filter: (path) => !/_state\/(?:lock|open)\.\w+/.test(path),
    })
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
