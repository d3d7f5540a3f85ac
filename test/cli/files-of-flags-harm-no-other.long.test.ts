import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { treeHashes } from '../fault/support.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { PIPELINE } from '../support/workspace.ts'
import { trial } from './trial.ts'

const SHARD = 'out/credentials/query=domain.scatterholt.com/import_window=2024-01-01'

async function exported() {
  const here = await trial()
  const path = (name: string) => join(here.folder, name)
  await exits(0, here.call('run'))
  writeFileSync(path('notes.txt'), 'do not lose this')
  symlinkSync('notes.txt', path('link'))
  symlinkSync('nowhere', path('dangling'))
  symlinkSync('out', path('way-in'))
  return { here, path }
}

const REFUSED = [
  [PIPELINE, 'the name of a pipeline file'],
  ['link', 'is a symbolic link'],
  ['dangling', 'is a symbolic link'],
  ['out/_manifest.json', 'in the folder of the data set'],
  ['out/new', 'in the folder of the data set'],
  ['nowhere/../out/new', 'in the folder of the data set'],
  ['out/_state/new', 'in the folder of the data set'],
  [`${SHARD}/part-00000.parquet`, 'in the folder of the data set'],
  ['way-in/new', 'in the folder of the data set'],
] as const

it('a file that a flag names is in no data set, and neither a pipeline file nor a link', async () => {
  const { here } = await exported()
  const [before, sent] = [await treeHashes(here.folder), here.sandbox.requests.length]
  for (const [name, why] of REFUSED) await exits(2, here.call('run', '--metrics-file', name), why)
  for (const [name, why] of some(REFUSED, 3)) await exits(2, here.call('evidence', '--output', name), why)
  expect(await treeHashes(here.folder)).toEqual(before)
  expect(here.sandbox.requests).toHaveLength(sent)
})

it('a device or a pipe is no file, and is not replaced', async () => {
  const { here, path } = await exported()
  expect(spawnSync('mkfifo', [path('pipe')]).status).toBe(0)
  for (const name of ['/dev/null', 'pipe', '.'])
    await exits(2, here.cli('run', PIPELINE, '--metrics-file', name), 'is no file')
})

it('a metrics file in the folder of a data set that is still to be made is refused', async () => {
  const { sandbox, output, call } = await trial()
  mkdirSync(output)
  await exits(2, call('run', '--metrics-file', 'out/run.prom'), 'in the folder of the data set')
  expect(readdirSync(output)).toEqual([])
  expect(sandbox.requests).toEqual([])
})
