import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { treeHashes } from '../fault/support.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { PASSWORD } from '../support/postgres/server.mjs'
import { CLI, exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { PIPELINE } from '../support/workspace.ts'
import { trial } from './trial.ts'

const SHARD = 'out/credentials/query=domain.scatterholt.com/import_window=2024-01-01'

/** A workspace with a data set, and files and links around it. */
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
  const queue = here.with({ SPILLWAY_QUEUE_URL: await newDatabase(), PGPASSWORD: PASSWORD })
  const [before, sent] = [await treeHashes(here.folder), here.sandbox.requests.length]
  for (const command of [
    ['run', PIPELINE, '--metrics-file'],
    ['evidence', PIPELINE, '--output'],
    ['worker', '--heartbeat-file'],
  ]) {
    for (const [name, why] of command[0] === 'run' ? REFUSED : some(REFUSED, 3)) {
      const { code, stderr } = await queue.cli(...command, name)
      expect([...command, name, code, stderr]).toEqual([...command, name, 2, expect.stringContaining(why)])
    }
  }
  expect(await treeHashes(here.folder)).toEqual(before)
  expect(here.sandbox.requests).toHaveLength(sent)
})

it('devices and pipes are written to, and never replaced', async () => {
  const { here, path } = await exported()
  const call = (...words: readonly string[]) => {
    const command = [process.execPath, CLI, ...words].join(' ')
    return spawnSync('sh', ['-c', command], {
      cwd: here.folder,
      env: { ...process.env, ...here.env },
      encoding: 'utf8',
    })
  }
  expect(call('run', PIPELINE, '--metrics-file /dev/null').status).toBe(0)
  const shown = call('run', PIPELINE, '--no-progress --metrics-file /dev/stderr')
  expect([shown.status, shown.stderr]).toEqual([0, expect.stringMatching(/^# HELP spillway_/m)])
  expect(spawnSync('mkfifo', [path('pipe')]).status).toBe(0)
  const nobody = call('run', PIPELINE, '--metrics-file pipe')
  expect([nobody.status, nobody.stderr]).toEqual([2, expect.stringContaining('cannot be written: ENXIO')])
})

it('a metrics file in the folder of a data set that is still to be made is refused', async () => {
  const { sandbox, output, call } = await trial()
  mkdirSync(output)
  const refused = await call('run', '--metrics-file', 'out/run.prom')
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('in the folder of the data set') })
  expect(readdirSync(output)).toEqual([])
  expect(sandbox.requests).toEqual([])
})

it('a worker writes its heartbeat file anew', async () => {
  const { here, path } = await exported()
  const queue = here.with({ SPILLWAY_QUEUE_URL: await newDatabase(), PGPASSWORD: PASSWORD })
  writeFileSync(path('alive'), 'before')
  const worker = queue.start('worker', '--heartbeat-file', 'alive')
  await worker.until(() => /^....-..-..T.*Z\n$/.test(readFileSync(path('alive'), 'utf8')))
  worker.child.kill('SIGTERM')
  await worker.result
})
