import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { inThisProcess } from '../support/in-this-process.ts'
import { readCsv } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { faultFigures } from './figures.ts'
import { missingRows, rowsOf } from './rows.ts'
import { concurrently, diskFault, runCli, shardHashes } from './support.ts'
import { type Sample, sampledCalls, scenario, type Trial, trial } from './trial.ts'

const figures = faultFigures('prune, redo and forget killed or without power at every sort of disk call')

/** One call of each sort, and not the first where there are several. */
const ONE: Sample = (index, count) => index === count >> 1

/** Calls of the change itself. Those for the lock are the same in every run. */
const OWN_WORK =
  /checkpoint|manifest|_SUCCESS|forgotten|^rm |_state\/(?:log|sealed)|credentials|_quarantine|^sync $/

type Case = {
  readonly what: string
  readonly change: readonly string[]
  readonly partitionBy: '[query, window]' | 'none'
  readonly invalidRate: number
  /** Flags of the run before it. */
  readonly until: readonly string[]
}

const FORGET = ['forget', 'pipeline.yaml', '--identities', 'people.txt', '--yes', '--json']
const REDO = ['run', 'pipeline.yaml', '--redo', '*']

/** From an age that begins at noon of a day on. */
function prune(day: string): readonly string[] {
  const days = Math.floor((Date.now() - Date.parse(`${day}T12:00:00Z`)) / 86_400_000)
  return ['prune', 'pipeline.yaml', '--older-than', `${days}d`, '--yes']
}

const BY_WINDOW = { partitionBy: '[query, window]', until: [] } as const
const CASES = [
  { what: 'forget', change: FORGET, ...BY_WINDOW, invalidRate: 0.2 },
  { what: 'prune of the first windows', change: prune('2024-01-17'), ...BY_WINDOW, invalidRate: 0.2 },
  { what: '--redo', change: REDO, ...BY_WINDOW, invalidRate: 0.1 },
  {
    what: 'forget while rows wait in the log',
    change: FORGET,
    partitionBy: 'none',
    invalidRate: 0.2,
    until: ['--max-requests', '7'],
  },
  { what: 'prune of all windows', change: prune('2024-02-01'), ...BY_WINDOW, invalidRate: 0.2 },
  { what: '--redo of one folder', change: REDO, partitionBy: 'none', invalidRate: 0.1, until: [] },
] as const satisfies readonly Case[]

const exportOf = ({ partitionBy, invalidRate }: Case) =>
  scenario({ format: 'csv', partitionBy, sandbox: { invalidRate, emptyPageRate: 0 } })

/** Three people, of whom one has an item in quarantine. */
async function peopleIn(output: string): Promise<readonly string[]> {
  const rows = await readCsv(output)
  const names = [...new Set(rows.map(({ identity_name }) => String(identity_name)))]
  const isAlone = (name: string) => names.every((other) => other === name || !other.includes(name))
  const plain = names.filter((name) => /^[a-z._]+@[a-z.]+$/.test(name) && isAlone(name))
  const [, rejected] = /"identity_name":"([a-z._]+@[a-z.]+)"/.exec(await quarantineOf(output)) ?? []
  return [plain[0]!, plain[plain.length >> 1]!, rejected!]
}

async function quarantineOf(output: string): Promise<string> {
  const folder = join(output, '_quarantine')
  const names = await readdir(folder).catch(() => [])
  const texts = names.map((name) => readFile(join(folder, name), 'utf8'))
  return (await Promise.all(texts)).join('')
}

/** Shards of the manifest, and what it counts, without times. */
async function manifestOf(output: string) {
  const { totals, shards, prunes } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  const { rows, quarantined, forgotten } = totals
  const pruned = prunes.map(({ pruned_at: _, before: __, ...counts }: Record<string, unknown>) => counts)
  return {
    shards: shards as readonly { readonly path: string; readonly sha256: string }[],
    counts: { rows, quarantined, sum: rows + quarantined + forgotten, shards: shards.length, pruned },
  }
}

/** What a data set holds, without times and names of files. */
async function contentsOf(output: string) {
  const { counts } = await manifestOf(output)
  const items = (await quarantineOf(output)).split('\n').length
  return { rows: [...(await rowsOf(output))].sort(), counts, items }
}

async function expectNowhere(output: string, people: readonly string[], about: string): Promise<void> {
  for (const entry of await readdir(output, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const text = await readFile(join(entry.parentPath, entry.name), 'latin1')
    for (const person of people) expect(text.includes(person), `${about}: ${entry.name}`).toBe(false)
  }
}

/** Exports as far as the case says, and writes the list of people. @returns them */
async function prepared({ run, runHere, workspace }: Trial, { until, change }: Case) {
  const { output } = workspace
  const begun = await run({ args: until })
  expect(begun.code, begun.stderr).toBe(until.length === 0 ? 0 : 4)
  if (!change.includes('people.txt')) return []
  const whole = join(workspace.folder, 'whole')
  await cp(output, whole, { recursive: true })
  if (until.length > 0) await runHere()
  const people = await peopleIn(output)
  await rm(output, { recursive: true })
  await cp(whole, output, { recursive: true })
  await rm(whole, { recursive: true })
  await writeFile(join(workspace.folder, 'people.txt'), people.join('\n'))
  return people
}

test.each(some(CASES as readonly Case[], 1))(
  'a killed $what is carried out or not, whoever reads the manifest misses no file, and the same command completes it',
  async (given) => {
    const { change, until } = given
    await trial(exportOf(given), async (attempt) => {
      const { workspace, sandbox } = attempt
      const people = await prepared(attempt, given)
      const sent = sandbox.requests.length
      const former = await shardHashes(workspace.output)

      const onCopy = async <T>(work: (folder: string, output: string) => Promise<T>): Promise<T> => {
        const folder = await mkdtemp(join(tmpdir(), 'spillway-change-'))
        try {
          await cp(workspace.folder, folder, { recursive: true })
          return await work(folder, join(folder, 'out'))
        } finally {
          await rm(folder, { recursive: true, force: true })
        }
      }
      const inProcess = async (folder: string, args: readonly string[], about: string) => {
        const { code, stdout, stderr } = await inThisProcess(args, folder, workspace.env)
        expect(code, `${about}: ${args.join(' ')}\n${stdout}${stderr}`).toBe(0)
      }
      const struck = (folder: string, fault: string) =>
        runCli({
          args: change,
          cwd: folder,
          env: { ...workspace.env, ...diskFault(join(folder, 'out'), fault, join(folder, 'calls')) },
        })
      /** The data set after the change and the rest of its export. */
      const finished = async (folder: string, about: string) => {
        const output = join(folder, 'out')
        await expectNowhere(output, people, about)
        if (until.length > 0) await inProcess(folder, ['run', 'pipeline.yaml'], about)
        await inProcess(folder, ['verify', 'pipeline.yaml', '--complete'], about)
        await expectNowhere(output, people, about)
        return contentsOf(output)
      }

      const whole = await onCopy(async (folder, output) => {
        if (until.length > 0) await inProcess(folder, ['run', 'pipeline.yaml'], 'without the change')
        return contentsOf(output)
      })
      const { clean, calls } = await onCopy(async (folder, output) => {
        await exits(0, struck(folder, 'count'))
        const left = await shardHashes(output)
        // Shards are never changed: what holds other rows has another name.
        const kept = [...former.keys()].filter((path) => left.has(path)).length
        expect(kept).toBeLessThan(change === REDO ? 1 : former.size)
        const clean = await finished(folder, 'undisturbed')
        return { clean, calls: (await readFile(join(folder, 'calls'), 'utf8')).split('\n') }
      })
      expect(clean.counts.rows < whole.counts.rows).toBe(change !== REDO)
      const staying = new Map(clean.rows)

      const faults = sampledCalls(calls, ONE).flatMap((number) => {
        const call = calls[number - 1]!
        // Shards are removed concurrently: the progress of the others at a power cut is not known.
        const isFlush = /^sync (?!credentials)/.test(call)
        return OWN_WORK.test(call) ? [{ fault: `${isFlush ? 'power' : 'kill'}:${number}`, call }] : []
      })
      expect(faults.length).toBeGreaterThan(7)
      await concurrently([...some(faults, 1).entries()], ([index, { fault, call }]) =>
        onCopy(async (folder, output) => {
          const about = `${fault} ${call}`
          const ended = await struck(folder, fault)
          // Files are removed side by side, so a call's number may stand for another one, or for none.
          if (ended.signal === 'SIGKILL') figures.kills++
          else expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
          figures.exports++
          const files = await shardHashes(output)
          for (const { path, sha256 } of (await manifestOf(output)).shards)
            expect(files.get(path), `${about}: ${path}`).toBe(sha256)
          // Between the names of new shards and the removal of old ones, rows may be there twice, never not at all.
          if (until.length === 0) expect(missingRows(staying, await rowsOf(output)), about).toBe(0)
          if (index % 2 === 0) {
            await inProcess(folder, ['run', 'pipeline.yaml'], about)
            if (until.length === 0) expect([whole, clean], about).toContainEqual(await contentsOf(output))
          }
          await inProcess(folder, change, about)
          expect(await finished(folder, about), about).toEqual(clean)
          for (const [path, hash] of await shardHashes(output))
            for (const before of [former, files]) expect([undefined, hash], path).toContain(before.get(path))
        }),
      )
      if (until.length === 0 && change !== REDO) expect(sandbox.requests).toHaveLength(sent)
    })
  },
)
