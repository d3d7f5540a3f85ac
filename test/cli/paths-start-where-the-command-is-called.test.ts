import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { inThisProcess } from '../support/in-this-process.ts'
import { newWorkspace } from '../support/workspace.ts'

it('a command from another directory says where it looked, and where there is a data set', async () => {
  const here = await newWorkspace({ load: { format: 'csv' } })
  expect((await here.run()).code).toBe(0)
  const elsewhere = join(here.folder, 'elsewhere')
  mkdirSync(elsewhere)
  for (const command of ['verify', 'query']) {
    const { code, stderr } = await inThisProcess([command, '../pipeline.yaml'], elsewhere, here.env)
    expect([command, code]).toEqual([command, 2])
    expect(stderr).toContain(join(elsewhere, 'out'))
    expect(stderr).toContain(`${here.output} holds a data set: relative paths start in the working directory`)
  }
  const { stdout } = await inThisProcess(['status', '../pipeline.yaml'], elsewhere, here.env)
  expect(stdout).toContain(`nothing is exported yet in ${join(elsewhere, 'out')}\n`)
})

it('~ is refused, with what to write: no shell expands it there', async () => {
  const here = await newWorkspace({ load: { path: '~/out' } })
  const { code, stderr } = await here.call('run')
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
  expect([code, stderr]).toEqual([2, expect.stringContaining('write ${HOME}/out')])
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
    const { code, stdout, stderr } = await call(command[0]!, ...command.slice(1), '--output', 'my data')
    expect([command, code, stdout, stderr]).toEqual([
      command,
      2,
      command.includes('--json') ? expect.stringMatching(/^\{"error":/) : '',
      expect.stringContaining("Run the pipeline first: `spillway run pipeline.yaml --output 'my data'`."),
    ])
  }
})
