import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { newDatabase } from '../support/postgres/database.ts'
import { PASSWORD } from '../support/postgres/server.mjs'
import { accessTo, sandboxWith, spillway, start, workFolder, writePipeline } from './spillway.ts'

const SHARD = 'out/credentials/query=domain.scatterholt.com/import_window=2024-01-01'

/** A folder with a data set in `out`, and files and links around it. */
async function exported() {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const env = accessTo(sandbox)
  const path = (name: string) => join(folder, name)
  const file = await writePipeline(folder, { rest: 'load: { path: out }' })
  expect((await spillway(['run', file], folder, env)).code).toBe(0)
  writeFileSync(path('notes.txt'), 'do not lose this')
  writeFileSync(path('notes.jsonl'), '{"level":7}\n')
  symlinkSync('notes.txt', path('link'))
  symlinkSync('nowhere', path('dangling'))
  symlinkSync('out', path('way-in'))
  const kept = [
    ...['notes.txt', 'notes.jsonl', file, 'out/_manifest.json', 'out/_state/checkpoint.jsonl'],
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
  ['notes.txt', 'a file that is not from spillway'],
  ['notes.jsonl', 'a file that is not from spillway'],
  ['trial.yaml', 'a file that is not from spillway'],
  ['link', 'is a symbolic link'],
  ['dangling', 'is a symbolic link'],
  ['out/_manifest.json', 'in the folder of the data set'],
  ['out/new', 'in the folder of the data set'],
  ['out/_state/checkpoint.jsonl', 'in the folder of the data set'],
  ['out/_state/new', 'in the folder of the data set'],
  [`${SHARD}/part-00000.parquet`, 'in the folder of the data set'],
  [`${SHARD}/part-00001.parquet`, 'in the folder of the data set'],
  ['way-in/new', 'in the folder of the data set'],
] as const

it('a log file is new, empty or a log, and lies in no data set', async () => {
  const { folder, env, path, file, unchanged } = await exported()
  for (const command of [['run', file], ['verify', file], ['schema']]) {
    for (const [name, why] of REFUSED) {
      const { code, stderr } = await spillway([...command, '--log-file', name], folder, env)
      expect([name, code, stderr]).toEqual([name, 2, expect.stringContaining(why)])
    }
  }
  unchanged()
  writeFileSync(path('empty.log'), '')
  for (const name of ['new.log', 'empty.log', 'new.log']) {
    const { code, stderr } = await spillway(['verify', file, '--log-file', name], folder, env)
    expect(code, stderr).toBe(0)
  }
})

it('a list of digests replaces its own file alone, and lies in no data set', async () => {
  const { folder, env, path, file, unchanged } = await exported()
  writeFileSync(path('people.txt'), 'nobody@nowhere.example')
  const forget = (name: string) =>
    spillway(['forget', file, '--identities', 'people.txt', '--digest-file', name], folder, env)
  for (const [name, why] of REFUSED) {
    const { code, stderr } = await forget(name)
    expect([name, code, stderr]).toEqual([name, 2, expect.stringContaining(why)])
  }
  rmSync(path('people.txt'))
  unchanged()
  writeFileSync(path('people.txt'), 'nobody@nowhere.example')
  for (const name of ['new.json', 'new.json']) {
    const { code, stderr } = await forget(name)
    expect(code, stderr).toBe(0)
  }
})

it('a log file in the folder of a data set that is still to be made is refused, and removed', async () => {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const file = await writePipeline(folder, { rest: 'load: { path: out }' })
  mkdirSync(join(folder, 'out'))
  const refused = await spillway(['run', file, '--log-file', 'out/run.log'], folder, accessTo(sandbox))
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('in the folder of the data set') })
  expect(readdirSync(join(folder, 'out'))).toEqual([])
  expect(sandbox.requests).toEqual([])
})

it('a heartbeat file is new, empty or a heartbeat, and lies in no data set', async () => {
  const { folder, env, path, unchanged } = await exported()
  const access = { ...env, SPILLWAY_QUEUE_URL: await newDatabase(), PGPASSWORD: PASSWORD }
  for (const [name, why] of REFUSED) {
    const { code, stderr } = await spillway(['worker', '--heartbeat-file', name], folder, access)
    expect([name, code, stderr]).toEqual([name, 2, expect.stringContaining(why)])
  }
  unchanged()
  writeFileSync(path('alive'), '')
  for (const last of ['', /^....-..-..T.*Z\n$/]) {
    const before = readFileSync(path('alive'), 'utf8')
    expect(before).toMatch(last)
    const worker = start(['worker', '--heartbeat-file', 'alive'], folder, access)
    await worker.until(() => !['', before].includes(readFileSync(path('alive'), 'utf8')))
    worker.child.kill('SIGTERM')
    await worker.result
  }
})
