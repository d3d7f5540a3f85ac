import { renameSync, rmSync } from 'node:fs'
import { cp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import type { Fault, LoggedRequest } from '../support/sandbox.ts'
import {
  CHECKPOINT,
  change,
  copyShard,
  type Damage,
  filesOfTheLog,
  flipped,
  leaveTemporaryFiles,
  lines,
  remove,
  replace,
  restored,
} from './damage.ts'
import { diskFault, hashesBesideRecord, type RunArgs, treeHashes } from './support.ts'
import { expectSameResult, scenario, type Trial, trial, type Undisturbed, undisturbed } from './trial.ts'

const EXPORT = scenario({ format: 'parquet' })
const SHARD = 'credentials/query=domain.quillmere.net/import_window=2024-01-01/part-00000.parquet'

/** Folders of exports that ended in these ways. */
const kept = {
  /** Before everything was exported: published shards, rows of open ones in the log, pages missing. */
  partial: '',
  /** By a kill before a shard got its name: no commit is in the checkpoint. */
  killed: '',
  complete: '',
}
type Kept = keyof typeof kept

let clean: Undisturbed

beforeAll(async () => {
  clean = await undisturbed(EXPORT)
  kept.partial = await keep({ args: ['--max-requests', '5'] }, 4)
  const names = clean.calls.filter((call) => call.startsWith('link credentials'))
  kept.killed = await keep((output) => ({ env: diskFault(output, `kill:${names[names.length >> 1]}`) }), null)
  kept.complete = await keep({}, 0)
})

const middle = (bytes: Buffer): Buffer => flipped(bytes, bytes.length >> 1)
/** No entry of the log names a domain after the last rows. */
const inRows = (bytes: Buffer): Buffer => flipped(bytes, bytes.lastIndexOf('scatterholt'))

/** Bits and bytes at other places: `fuzz-state`, and of the log alone `test/state/commits-fold-to-one-state`. */
const HEALED: readonly (readonly [Kept, what: string, Damage])[] = [
  ['partial', 'rows in the log with a flipped bit', filesOfTheLog(inRows)],
  ['partial', 'temporary files that a crash left', leaveTemporaryFiles],
  ['partial', 'a manifest that is no JSON', replace('_manifest.json', '{"version":')],
  ['partial', 'a manifest that is missing', remove('_manifest.json')],
  ['partial', 'a shard that is not in the checkpoint', copyShard],
  // What is behind the last whole commit is as if it never had been.
  ['killed', 'rows in the log with a flipped bit', filesOfTheLog(inRows)],
  ['killed', 'a bit flipped in a commit', filesOfTheLog(middle)],
  ['killed', 'all commits missing', remove('_state/log')],
  ['complete', 'a shard that is not in the checkpoint', copyShard],
  ['complete', 'the state of an earlier run, with fewer shards', restored(() => kept.partial, '_state')],
  ['complete', 'the checkpoint of an earlier run, without its log', restored(() => kept.partial, CHECKPOINT)],
  ['complete', 'a _SUCCESS that is missing', remove('_SUCCESS')],
]

test.each(HEALED)('a %s export with %s is healed without loss', async (which, _, damage) => {
  await from(which, async (attempt) => {
    await damage(attempt.workspace.output)
    await expectHealed(attempt)
  })
})

const SEALED = '_state/sealed'

/** Edits the shards that wait for their names. */
const sealed = (edit: (bytes: Buffer) => Buffer): Damage => {
  return async (output) => {
    const names = await readdir(join(output, SEALED))
    for (const name of names) await change(join(output, SEALED, name), edit)
    expect(names).not.toHaveLength(0)
  }
}

const short = (bytes: Buffer): Buffer => bytes.subarray(0, -1)

const REFUSED: readonly (readonly [Kept, what: string, message: RegExp, Damage])[] = [
  ['partial', 'a line missing', /Line 4 .* does not follow/, lines((all) => all.toSpliced(3, 1))],
  ['partial', 'the last line missing', /followed by nothing/, lines((all) => all.toSpliced(-2, 1))],
  ['partial', 'a file that is no checkpoint', /not a checkpoint .* first line/, replace(CHECKPOINT, '{}\n')],
  ['partial', 'a lock that is no lock', /lock file cannot be/, replace('_state/lock.0123456789ab', '{')],
  ['killed', 'a sealed shard with a flipped bit', /A sealed shard changed or vanished/, sealed(middle)],
  ['killed', 'a sealed shard that is short', /A shard is missing/, sealed(short)],
  ['killed', 'sealed shards missing', /A shard is missing/, remove(SEALED)],
  ['complete', 'a published shard missing', /A shard is missing/, remove(SHARD)],
]

test.each(REFUSED)(
  'a %s export with %s is refused with exit 1, every file unchanged',
  async (which, _, message, damage) => {
    await from(which, async (attempt) => {
      const { output } = attempt.workspace
      await damage(output)
      const before = await hashesBesideRecord(output)
      const refused = await attempt.run()
      expect(refused.code, refused.stderr).toBe(1)
      expect(refused.stderr).toMatch(message)
      expect(refused.stderr).not.toMatch(/^\s+at |unexpected error/m)
      // Where rows are missing it does not stand.
      if (/A shard/.test(refused.stderr)) before.delete('_SUCCESS')
      expect(await hashesBesideRecord(output)).toEqual(before)
      expect(attempt.sandbox.requests).toHaveLength(0)
      await expectFreshStart(attempt)
    })
  },
)

test.each([4, 2, 6, 8])(
  'a folder that vanishes during a run at search %i never makes it look complete',
  async (search) => {
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
      expect(stopped.code, stopped.stderr).toBe(1)
      expect(stopped.stderr).toMatch(/missing|removed/)
      expect([...(await treeHashes(output)).keys()]).not.toContain('_SUCCESS')
      await expectHealed(attempt)
    })
  },
)

/** Also where a person has to do what the first run says. */
async function expectHealed(attempt: Trial): Promise<void> {
  let healed = await attempt.run()
  if (healed.code === 2) {
    const { output } = attempt.workspace
    expect(attempt.sandbox.requests).toHaveLength(0)
    if (/_state is older than the data set/.test(healed.stderr)) await rm(join(output, CHECKPOINT))
    else for (const path of await unnamedIn(attempt)) await rm(join(output, path))
    healed = await attempt.run()
  }
  expect(healed.code, healed.stderr).toBe(0)
  // Damaged pages are requested again, so requests are not limited here.
  const interruptions = Number.POSITIVE_INFINITY
  await expectSameResult(attempt, { scenario: EXPORT, clean, about: 'healed', interruptions })
  const { output } = attempt.workspace
  const names = [...(await treeHashes(output)).keys()]
  expect(names.filter((name) => /^_state\/(?:open|sealed\/)/.test(name))).toEqual([])
  // Of the log only what fences out an owner that may still run.
  for (const name of names.filter((name) => name.startsWith('_state/log/')))
    expect(await readFile(join(output, name), 'utf8')).toContain('"kind":"claim"')
  await expectFreshStart(attempt)
}

/** What a run refuses, as `verify` names it. */
async function unnamedIn(attempt: Trial): Promise<readonly string[]> {
  const { stdout } = await attempt.command('verify', { args: ['--json'] })
  const { problems } = JSON.parse(stdout) as { problems: { path: string; cause: string }[] }
  const paths = problems.flatMap(({ path, cause }) => (cause === 'not_on_record' ? [path] : []))
  expect(paths).not.toEqual([])
  return paths
}

/** From any state, `--fresh --yes` starts over. */
async function expectFreshStart(attempt: Trial): Promise<void> {
  expect(await attempt.runHere({ fresh: true })).toMatchObject({ status: 'complete', error: null })
  const interruptions = Number.POSITIVE_INFINITY
  await expectSameResult(attempt, { scenario: EXPORT, clean, about: 'fresh', interruptions })
}

/** Runs an export once and keeps its files. @returns the folder */
async function keep(
  settings: Partial<RunArgs> | ((output: string) => Partial<RunArgs>),
  code: number | null,
): Promise<string> {
  return trial(EXPORT, async ({ run, workspace }) => {
    const ended = await run(typeof settings === 'function' ? settings(workspace.output) : settings)
    expect(ended.code, ended.stderr).toBe(code)
    const folder = scratchFolder()
    await cp(workspace.output, folder, {
      recursive: true,
      // What belongs to a killed process.
      filter: (path) => !/_state\/(?:lock|open)\.\w+/.test(path),
    })
    return folder
  })
}

/** Gives the work a copy of the kept export. */
function from(which: Kept, work: (attempt: Trial) => Promise<void>): Promise<void> {
  return trial(EXPORT, async (attempt) => {
    await cp(kept[which], attempt.workspace.output, { recursive: true })
    await work(attempt)
  })
}
