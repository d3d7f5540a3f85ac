import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { PASSWORD } from '../support/postgres/server.mjs'
import { some } from '../support/thorough.ts'
import { accessTo, ROOT, sandboxWith, spillway, start, trial, writePipeline } from './spillway.ts'

const SHARD = 'out/credentials/query=domain.scatterholt.com/import_window=2024-01-01'

/** A folder with a data set in `out`, and files and links around it. */
async function exported() {
  const sandbox = await sandboxWith()
  const folder = scratchFolder()
  const env = accessTo(sandbox)
  const path = (name: string) => join(folder, name)
  const file = await writePipeline(folder, { rest: 'load: { path: out }' })
  expect((await spillway(['run', file], folder, env)).code).toBe(0)
  writeFileSync(path('notes.txt'), 'do not lose this')
  symlinkSync('notes.txt', path('link'))
  symlinkSync('nowhere', path('dangling'))
  symlinkSync('out', path('way-in'))
  const kept = [
    'notes.txt',
    file,
    'out/_manifest.json',
    'out/_state/checkpoint.jsonl',
    `${SHARD}/part-00000.parquet`,
  ]
  const contents = () => kept.map((name) => readFileSync(path(name), 'latin1'))
  const names = () => readdirSync(folder, { recursive: true }).sort()
  const before = { contents: contents(), names: names(), sent: sandbox.requests.length }
  const unchanged = () => {
    expect({ contents: contents(), names: names(), sent: sandbox.requests.length }).toEqual(before)
  }
  return { folder, env, path, file, unchanged }
}

const REFUSED = [
  ['trial.yaml', 'the name of a pipeline file'],
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
  const { folder, env, file, unchanged } = await exported()
  const queue = { ...env, SPILLWAY_QUEUE_URL: await newDatabase(), PGPASSWORD: PASSWORD }
  for (const command of [
    ['schema', '--log-file'],
    ['run', file, '--log-file'],
    ['run', file, '--metrics-file'],
    ['evidence', file, '--output'],
    ['worker', '--heartbeat-file'],
  ]) {
    for (const [name, why] of command[1] === '--log-file' ? REFUSED : some(REFUSED, 3)) {
      const { code, stderr } = await spillway([...command, name], folder, queue)
      expect([...command, name, code, stderr]).toEqual([...command, name, 2, expect.stringContaining(why)])
    }
  }
  unchanged()
})

it('devices and pipes are written to, and never replaced', async () => {
  const { folder, env, path, file } = await exported()
  const call = (...words: readonly string[]) => {
    const command = [process.execPath, join(ROOT, 'dist/cli/main.js'), ...words].join(' ')
    return spawnSync('sh', ['-c', command], {
      cwd: folder,
      env: { ...process.env, ...env },
      encoding: 'utf8',
    })
  }
  expect(call('run', file, '--log-file /dev/null --metrics-file /dev/null').status).toBe(0)
  const shown = call('run', file, '--no-progress --log-file /dev/stderr --metrics-file /dev/stderr')
  expect([shown.status, shown.stderr]).toEqual([
    0,
    expect.stringMatching(/"event":"run.start".*^# HELP spillway_/ms),
  ])
  expect(spawnSync('mkfifo', [path('pipe')]).status).toBe(0)
  const nobody = call('schema', '--log-file pipe')
  expect([nobody.status, nobody.stderr]).toEqual([2, expect.stringContaining('cannot be written: ENXIO')])
  const piped = call('run', file, '--no-progress --log-file pipe & timeout 60 cat pipe; wait')
  expect(piped.stdout).toContain('"event":"run.start"')
})

it('a log file in the folder of a data set that is still to be made is refused, and removed', async () => {
  const { sandbox, folder, file, call } = await trial({ rest: 'load: { path: out }' })
  mkdirSync(join(folder, 'out'))
  const refused = await call('run', file, '--log-file', 'out/run.log')
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('in the folder of the data set') })
  expect(readdirSync(join(folder, 'out'))).toEqual([])
  expect(sandbox.requests).toEqual([])
})

it('a worker writes its heartbeat file anew', async () => {
  const { folder, env, path } = await exported()
  const access = { ...env, SPILLWAY_QUEUE_URL: await newDatabase(), PGPASSWORD: PASSWORD }
  writeFileSync(path('alive'), 'before')
  const worker = start(['worker', '--heartbeat-file', 'alive'], folder, access)
  await worker.until(() => /^....-..-..T.*Z\n$/.test(readFileSync(path('alive'), 'utf8')))
  worker.child.kill('SIGTERM')
  await worker.result
})
