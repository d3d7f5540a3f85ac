import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
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

it('a command that finds no data set proposes the run with the folder that was given', async () => {
  const { call } = await newWorkspace({})
  for (const command of [
    ['verify'],
    ['verify', '--json', '--complete'],
    ['query'],
    ['load', '--to', 'duckdb:x.db'],
    ['summary'],
  ]) {
    const said = "Run the pipeline first: `spillway run pipeline.yaml --output 'my data'`."
    const { stdout } = await exits(2, call(command[0]!, ...command.slice(1), '--output', 'my data'), said)
    expect(stdout).toMatch(command.includes('--json') ? /^\{"error":/ : /^$/)
  }
})
