import { mkdirSync } from 'node:fs'
import { readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { inThisProcess } from '../support/in-this-process.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

it('a command from another directory says where it looked, and where there is a data set', async () => {
  const here = await newWorkspace({ load: { format: 'csv' } })
  expect((await here.run()).code).toBe(0)
  const elsewhere = join(here.folder, 'elsewhere')
  mkdirSync(elsewhere)
  for (const command of ['verify', 'query']) {
    const { stderr } = await exits(2, inThisProcess([command, '../pipeline.yaml'], elsewhere, here.env))
    expect(stderr).toContain(join(elsewhere, 'out'))
    expect(stderr).toContain(`${here.output} holds a data set: relative paths start in the working directory`)
  }
  const { stdout } = await inThisProcess(['status', '../pipeline.yaml'], elsewhere, here.env)
  expect(stdout).toContain(`nothing is exported yet in ${join(elsewhere, 'out')}\n`)
})

it('~ is refused, with what to write: no shell expands it there', async () => {
  const here = await newWorkspace({ load: { path: '~/out' } })
  await exits(2, here.call('run'), 'write ${HOME}')
})

it('a command that finds no data set proposes the run with the folder that was given, as JSON on stdout', async () => {
  const { call } = await newWorkspace({})
  const text = expect.any(String)
  const error = { kind: 'config', what: text, where: text, next: text }
  for (const [command = '', ...flags] of [
    ['verify'],
    ['verify', '--json', '--complete'],
    ['query', 'SELECT 1', '--json'],
    ['query'],
    ['load', '--to', 'duckdb:x.db', '--json'],
    ['summary'],
  ]) {
    const said = "Run the pipeline first: `spillway run pipeline.yaml --output 'my data'`."
    const { stdout } = await exits(2, call(command, ...flags, '--output', 'my data'), said)
    if (flags.includes('--json')) expect(JSON.parse(stdout)).toEqual({ error })
    else expect(stdout).toBe('')
  }
})

const PATHS = [
  ['./results/of it/', './results/of it'],
  ['out', 'out'],
] as const

it.each(some(PATHS, 1))(
  'an error below load.path has the path as the file gives it: %s',
  async (path, shown) => {
    const here = await newWorkspace({ load: { path } })
    const says = async (code: unknown, where: string, command: string, ...flags: string[]): Promise<void> => {
      const ended = await here.call(command, ...flags)
      expect(ended.code, ended.stderr).toEqual(code)
      expect(ended.stderr).toMatch(new RegExp(`\\(${where.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}[^)]*\\)`))
    }
    await exits(0, here.run())
    const output = join(here.folder, path)
    const [shard = ''] = await shardPaths(output)
    await rm(join(output, shard))
    await says(1, `${shown}/${shard}`, 'run')

    const lock = '_state/lock.0123456789ab'
    await writeFile(join(output, lock), 'no lock file')
    await says(1, `${shown}/${lock}`, 'run')
    await rm(join(output, lock))

    const checkpoint = join(output, '_state/checkpoint.jsonl')
    const lines = (await readFile(checkpoint, 'utf8')).split('\n')
    await writeFile(checkpoint, [lines[0], 'no line', ...lines.slice(2)].join('\n'))
    for (const command of ['run', 'status', 'plan', 'check'])
      await says(expect.any(Number), `${shown}/_state/checkpoint.jsonl`, command)
    await truncate(checkpoint)
    await says(1, `${shown}/_state/checkpoint.jsonl`, 'run')

    await writeFile(join(here.folder, 'elsewhere'), 'a file')
    await says(2, 'elsewhere', 'run', '--output', 'elsewhere')
  },
)
