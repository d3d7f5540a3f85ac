import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exits } from '../support/run-cli.ts'
import { monthsUntil, newWorkspace, type Workspace } from '../support/workspace.ts'
import { newTarget } from './targets.ts'

const manifestIn = async ({ folder }: Workspace, path: string): ReturnType<Workspace['manifest']> =>
  JSON.parse(await readFile(join(folder, path, '_manifest.json'), 'utf8'))

it('after a change that is frozen the load prints the command that supersedes, and last night’s line is refused', async () => {
  const parts = { extract: { domains: ['scatterholt.com'], windows: monthsUntil('2024-03-01') } }
  const here = await newWorkspace({ ...parts, load: { path: 'output/old one' } })
  const target = await newTarget('duckdb', here)
  const lastNight = ['load', 'output/old one', '--to', target.url, '--table', 'leaks']
  await exits(0, here.call('run'))
  await exits(0, here.cli(...lastNight), /^(?!.*other data set)/s)
  const former = (await manifestIn(here, 'output/old one')).data_set_id
  await here.write({ ...parts, transform: { secret: 'drop' }, load: { path: 'output/new one' } })
  await exits(0, here.call('run'))
  const { data_set_id: id, totals } = await manifestIn(here, 'output/new one')
  const { stdout } = await exits(0, here.call('load', '--to', target.url, '--table', 'leaks'))
  expect(stdout.replace(/node \S+main\.js/, 'spillway')).toContain(
    `The table also holds 1 other data set: ${former} (trial, ${totals.rows} rows). If this one follows it: spillway load 'output/new one' --to duckdb:leaks.db --table leaks --supersede ${former}\n`,
  )
  const line = ['load', 'output/new one', '--to', target.url, '--table', 'leaks', '--supersede', former]
  const { stdout: told } = await exits(0, here.cli(...line))
  expect(told).toContain(`${totals.rows} rows of the superseded data set removed\n`)
  const refused = await exits(2, here.cli(...lastNight))
  expect(refused.stderr).toContain(`The data set ${id} has superseded this one in the table (main.leaks)`)
  expect(await target.rows('select distinct spillway_data_set as d, hash from leaks')).toEqual([
    { d: id, hash: null },
  ])
  const json = await exits(0, here.cli(...line, '--json'))
  expect(JSON.parse(json.stdout)).toMatchObject({ rows: 0, superseded_rows: 0, other_data_sets: [] })
})
