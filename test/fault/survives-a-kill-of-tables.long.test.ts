import { existsSync } from 'node:fs'
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deltaShards, icebergShards, latestVersion, metadataOf } from '../open-tables/world.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { faultFigures } from './figures.ts'
import { diskFault, runCli, shardPaths } from './support.ts'
import { type Sample, type Scenario, sampledCalls, scenario, type Trial, trial } from './trial.ts'

const figures = faultFigures('commands killed at every sort of write of table metadata')

/** One call of each sort, and not the first where there are several. */
const ONE: Sample = (index, count) => index === count >> 1

/** Calls that write or remove metadata of tables; the last are the removals of shards that the tables named. */
const OF_TABLES = /_iceberg|_delta_log|^rmdir credentials/

/** Of the first windows, so that others stay. */
const AGE = `${Math.floor((Date.now() - Date.parse('2024-01-17T12:00:00Z')) / 86_400_000)}d`

const COMMANDS = [
  { what: 'run', args: ['run', 'pipeline.yaml'], isFirst: true },
  { what: 'run --redo', args: ['run', 'pipeline.yaml', '--redo', '*'], next: ['run', 'pipeline.yaml'] },
  { what: 'prune', args: ['prune', 'pipeline.yaml', '--older-than', AGE, '--yes'] },
  { what: 'forget', args: ['forget', 'pipeline.yaml', '--identities', 'people.txt', '--yes'] },
]

async function listed(output: string): Promise<readonly string[]> {
  const { shards } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  return shards.map(({ path }: { path: string }) => path).sort()
}

/** Reads both tables as an engine does, as far as they are there: each file that they name has to be whole. */
async function expectReadable(output: string): Promise<void> {
  if ((await latestVersion(output)) > 0) await icebergShards(output, await metadataOf(output))
  if (existsSync(join(output, '_delta_log/00000000000000000000.json'))) await deltaShards(output)
}

/** Tables name the address of their data set, so a copy needs the place of the original. */
async function restored({ workspace }: Trial, from: string): Promise<void> {
  await rm(workspace.output, { recursive: true, force: true })
  if (existsSync(from)) await cp(from, workspace.output, { recursive: true })
}

test.each(COMMANDS)(
  'a killed $what leaves tables whose files are all there, and after the next command they are exact',
  async ({ args, next = args, isFirst = false }) => {
    const given = scenario({ format: 'parquet', partitionBy: '[query, window]', sandbox: { invalidRate: 0 } })
    await trial(tabled(given), async (attempt) => {
      const { workspace, runHere } = attempt
      const { folder, output, env } = workspace
      const before = scratchFolder()
      if (!isFirst) {
        await runHere()
        if (args.includes('people.txt')) {
          const { stdout } = await inThisProcess(['query', 'pipeline.yaml', PERSON, '--json'], folder, env)
          await writeFile(join(folder, 'people.txt'), /"person":"([^"]+)"/.exec(stdout)?.[1] ?? '')
        }
        await cp(output, join(before, 'out'), { recursive: true })
      }
      const struck = (fault: string) =>
        runCli({ args, cwd: folder, env: { ...env, ...diskFault(output, fault, join(folder, 'calls')) } })
      await exits(0, struck('count'))
      const calls = (await readFile(join(folder, 'calls'), 'utf8')).split('\n')
      const faults = sampledCalls(calls, ONE).filter((number) => OF_TABLES.test(calls[number - 1]!))
      expect(faults.length).toBeGreaterThan(8)
      for (const number of some(faults, 1)) {
        const about = `${number}: ${calls[number - 1]}`
        await restored(attempt, join(before, 'out'))
        const ended = await struck(`kill:${number}`)
        if (ended.signal === 'SIGKILL') figures.kills++
        else expect(ended.code, `${about}\n${ended.stderr}`).toBe(0)
        await expectReadable(output)
        const again = await inThisProcess(next, folder, env)
        expect(again.code, `${about}\n${again.stdout}${again.stderr}`).toBe(0)
        figures.exports++
        const shards = await listed(output)
        expect(await icebergShards(output, await metadataOf(output)), about).toEqual(shards)
        expect(await deltaShards(output), about).toEqual(shards)
        const verified = await inThisProcess(['verify', 'pipeline.yaml', '--complete'], folder, env)
        expect(verified.code, `${about}\n${verified.stdout}`).toBe(0)
      }
    })
  },
)

const EXPORT = scenario({ format: 'parquet', partitionBy: '[query, window]' })

test('--fresh removes the tables before the first shard, so no snapshot names a path that is used again', async () => {
  await trial(tabled(EXPORT), async ({ workspace, run, runHere }) => {
    await runHere()
    const { folder, output, env } = workspace
    const firstShard = 'rmdir credentials/query=domain.quillmere.net/import_window=2024-01-01'
    const ended = await run({ args: ['--fresh', '--yes'], env: diskFault(output, `kill:${firstShard}`) })
    expect(ended.signal).toBe('SIGKILL')
    figures.kills++
    expect((await shardPaths(output)).length).toBeGreaterThan(0)
    expect(await latestVersion(output)).toBe(0)
    expect(existsSync(join(output, '_delta_log'))).toBe(false)
    await exits(0, inThisProcess(['run', 'pipeline.yaml', '--fresh', '--yes'], folder, env))
    figures.exports++
    expect(await icebergShards(output, await metadataOf(output))).toEqual(await listed(output))
    expect(await deltaShards(output)).toEqual(await listed(output))
  })
})

test('of two processes that make tables at once, both or one succeed, and each table has one commit', async () => {
  await trial(EXPORT, async ({ workspace, runHere }) => {
    await runHere()
    const { folder, output, env } = workspace
    const yaml = await readFile(workspace.pipeline, 'utf8')
    await writeFile(workspace.pipeline, withTables(yaml))
    const command = { args: ['tables', 'pipeline.yaml'], cwd: folder, env, onStart: () => {} }
    const ended = await Promise.all([runCli(command), runCli(command)])
    for (const { code, stderr } of ended) expect([0, 5], stderr).toContain(code)
    expect(ended.map(({ code }) => code)).toContain(0)
    expect(await latestVersion(output)).toBe(1)
    expect(await readdir(join(output, '_delta_log'))).toHaveLength(1)
    expect(await icebergShards(output, await metadataOf(output))).toEqual(await listed(output))
    expect(await deltaShards(output)).toEqual(await listed(output))
  })
})

function withTables(yaml: string): string {
  return yaml.replace('shard_rows: 15', 'shard_rows: 15, table_formats: [iceberg, delta]')
}

function tabled(given: Scenario): Scenario {
  return { ...given, yaml: withTables(given.yaml) }
}

const PERSON = 'SELECT min(identity_name) AS person FROM credentials'
