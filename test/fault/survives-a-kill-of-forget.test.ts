import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { spillway } from '../cli/spillway.ts'
import { readCsv } from '../e2e/support/read-shards.ts'
import { mirror } from '../support/bucket.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { type BucketTrial, bucketTrial, CHANGES, FATES, killedAt } from './bucket-trial.ts'
import { faultFigures } from './figures.ts'
import { concurrently, diskFault, runCli } from './support.ts'
import { type Sample, sampledCalls, scenario, type Trial, trial } from './trial.ts'

const figures = faultFigures('forget killed at every sort of disk call, and of request to object storage')

/** One call of each sort, and not the first where there are several. */
const ONE: Sample = (index, count) => index === count >> 1

/** Calls of forget itself. Those for the lock are the same in every run. */
const OWN_WORK =
  /checkpoint|manifest|_SUCCESS|forgotten|^rm |_state\/(?:log|sealed)|credentials|_quarantine|^sync $/

const FORGET = ['forget', 'pipeline.yaml', '--identities', 'people.txt', '--yes', '--json']

const STATES = [
  { what: 'a finished data set', partitionBy: '[query, window]', until: [], samples: 1 },
  { what: 'one whose rows wait in the log', partitionBy: 'none', until: ['--max-requests', '7'], samples: 1 },
] as const

const exportOf = (partitionBy: (typeof STATES)[number]['partitionBy']) =>
  scenario({ format: 'csv', partitionBy, sandbox: { invalidRate: 0.2, emptyPageRate: 0 } })

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
  const texts = (await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8'))
  return (await Promise.all(texts)).join('')
}

/** What a data set holds, without times and names of files. */
async function contentsOf(output: string) {
  const { totals, shards } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  const { rows, quarantined, forgotten } = totals
  return {
    rows: (await readCsv(output)).map((row) => JSON.stringify(row)).sort(),
    counts: { rows, quarantined, forgotten, sum: rows + quarantined + forgotten, shards: shards.length },
    items: (await quarantineOf(output)).split('\n').length,
  }
}

async function expectNowhere(output: string, people: readonly string[], about: string): Promise<void> {
  for (const entry of await readdir(output, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const text = await readFile(join(entry.parentPath, entry.name), 'latin1')
    for (const person of people) expect(text.includes(person), `${about}: ${entry.name}`).toBe(false)
  }
}

/** Exports as far as the state says, and writes the list of people. @returns them */
async function prepared({ run, runHere, workspace }: Trial, until: readonly string[], output: string) {
  const begun = await run({ args: until })
  expect(begun.code, begun.stderr).toBe(until.length === 0 ? 0 : 4)
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

test.each(some(STATES, 1))(
  'of $what, a killed forget and another one leave nothing of theirs, and all of others once',
  async ({ partitionBy, until, samples }) => {
    await trial(exportOf(partitionBy), async (attempt) => {
      const { workspace, sandbox } = attempt
      const people = await prepared(attempt, until, workspace.output)
      const sent = sandbox.requests.length

      const onCopy = async <T>(work: (folder: string) => Promise<T>): Promise<T> => {
        const folder = await mkdtemp(join(tmpdir(), 'spillway-forget-'))
        try {
          await cp(workspace.folder, folder, { recursive: true })
          return await work(folder)
        } finally {
          await rm(folder, { recursive: true, force: true })
        }
      }
      const inProcess = async (folder: string, args: readonly string[], about: string) => {
        const { code, stdout, stderr } = await spillway(args, folder, workspace.env)
        expect(code, `${about}: ${args.join(' ')}\n${stdout}${stderr}`).toBe(0)
        return stdout
      }
      const struck = (folder: string, fault: string) =>
        runCli({
          args: FORGET,
          cwd: folder,
          env: { ...workspace.env, ...diskFault(join(folder, 'out'), fault, join(folder, 'calls')) },
        })
      /** The data set after the rest of its export. */
      const finished = async (folder: string, about: string) => {
        const output = join(folder, 'out')
        await expectNowhere(output, people, about)
        if (until.length > 0) await inProcess(folder, ['run', 'pipeline.yaml'], about)
        await inProcess(folder, ['verify', 'pipeline.yaml', '--complete'], about)
        await expectNowhere(output, people, about)
        return contentsOf(output)
      }

      const { clean, calls } = await onCopy(async (folder) => {
        const ended = await exits(0, struck(folder, 'count'))
        expect(JSON.parse(ended.stdout).rows).toBeGreaterThan(1)
        const clean = await finished(folder, 'undisturbed')
        return { clean, calls: (await readFile(join(folder, 'calls'), 'utf8')).split('\n') }
      })
      expect(clean.counts.forgotten).toBeGreaterThan(2)

      const faults = sampledCalls(calls, ONE).flatMap((number) => {
        const call = calls[number - 1]!
        const isFlush = /^sync (?!credentials)/.test(call)
        return OWN_WORK.test(call) ? [{ fault: `${isFlush ? 'power' : 'kill'}:${number}`, call }] : []
      })
      expect(faults.length).toBeGreaterThan(7)
      await concurrently([...some(faults, samples).entries()], ([index, { fault, call }]) =>
        onCopy(async (folder) => {
          const about = `${fault} ${call}`
          const ended = await struck(folder, fault)
          // Files are removed side by side, so a call's number may stand for another one, or for none.
          if (ended.signal === 'SIGKILL') figures.kills++
          else expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
          figures.exports++
          // A run in between changes nothing of it.
          if (index % 2 === 0) await inProcess(folder, ['run', 'pipeline.yaml'], about)
          await inProcess(folder, FORGET, about)
          expect(await finished(folder, about), about).toEqual(clean)
        }),
      )
      if (until.length === 0) expect(sandbox.requests).toHaveLength(sent)
    })
  },
)

test.runIf(THOROUGH)('the same in object storage', async () => {
  const mirrored = async ({ double, workspace }: BucketTrial): Promise<void> => {
    await rm(workspace.output, { recursive: true, force: true })
    await mirror(double, 'acme', workspace.output)
  }
  const begun = async (attempt: BucketTrial): Promise<readonly string[]> => {
    await exits(0, attempt.run())
    await mirrored(attempt)
    const people = await peopleIn(attempt.workspace.output)
    await writeFile(join(attempt.workspace.folder, 'people.txt'), people.join('\n'))
    return people
  }
  const changesOf = ({ double }: BucketTrial): string[] =>
    double.requests({ operation: CHANGES }).map(({ operation, key }) => `${operation} ${key}`)
  const forget = (attempt: BucketTrial, settings = {}) =>
    attempt.command('forget', { ...settings, args: ['--identities', 'people.txt', '--yes'] })
  const given = exportOf('[query, window]')

  const { clean, calls, before } = await bucketTrial(given, async (attempt) => {
    const people = await begun(attempt)
    const before = changesOf(attempt).length
    await exits(0, forget(attempt))
    const calls = changesOf(attempt).slice(before)
    await mirrored(attempt)
    await expectNowhere(attempt.workspace.output, people, 'undisturbed')
    return { clean: await contentsOf(attempt.workspace.output), calls, before }
  })
  expect(before).toBeGreaterThan(0)
  const stops = some(sampledCalls(calls, ONE), 1)
  await concurrently([...stops.entries()], ([index, number]) =>
    bucketTrial(given, async (attempt) => {
      const people = await begun(attempt)
      const fate = FATES[index % FATES.length]!
      const about = `${number}: ${calls[number - 1]}, ${fate}`
      const sent = changesOf(attempt).length
      const { deliver, isKilled } = await killedAt(attempt, number, fate, (settings) =>
        forget(attempt, settings),
      )
      if (isKilled) figures.kills++
      expect(changesOf(attempt).length, about).toBeGreaterThan(sent)
      const next = await forget(attempt)
      expect(next.code, `${about}\n${next.stderr}`).toBe(0)
      deliver()
      // No shard is ever removed late, but `_SUCCESS` may be. The same command puts it back.
      if (fate === 'arrives late' && calls[number - 1] === 'DeleteObject acme/_SUCCESS') {
        const again = await forget(attempt)
        expect(again.code, `${about}\n${again.stderr}`).toBe(0)
      }
      const verified = await attempt.command('verify', { args: ['--complete'] })
      expect(verified.code, `${about}\n${verified.stdout}${verified.stderr}`).toBe(0)
      await mirrored(attempt)
      await expectNowhere(attempt.workspace.output, people, about)
      expect(await contentsOf(attempt.workspace.output), about).toEqual(clean)
    }),
  )
})
