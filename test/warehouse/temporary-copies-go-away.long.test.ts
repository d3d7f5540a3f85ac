import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { temporaryFolder } from '../../src/state/index.ts'
import { describeOwner, lockFileText } from '../../src/state/lock/lock-file.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { BUCKET, bucketHere } from '../support/bucket.ts'
import { exits, start } from '../support/run-cli.ts'
import { newWorkspace, type Workspace } from '../support/workspace.ts'
import { exportHere } from './in-process.ts'

/** The system's folder for temporary files, during the test. */
function temporaryFiles(below: string): string {
  const folder = join(below, 'tmp')
  mkdirSync(folder)
  vi.stubEnv('TMPDIR', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  return folder
}

const ALIVE = describeOwner(new Date())
const DEAD = { ...ALIVE, pid: spawnSync(process.execPath, ['--version']).pid, process_start: '1' }
const ELSEWHERE = { ...ALIVE, host: 'etl-2' }

/** Folders with a copy of a shard each, of these owners. */
async function leave(folder: string, left: Readonly<Record<string, typeof ALIVE | null>>): Promise<void> {
  for (const [name, owner] of Object.entries(left)) {
    await mkdir(join(folder, name, 'credentials'), { recursive: true })
    await writeFile(join(folder, name, 'credentials/part-00000.parquet'), 'rows')
    if (owner !== null) await writeFile(join(folder, name, 'owner'), lockFileText(owner))
  }
}

it('the copies of a dead process are removed, those of a living one and other files stay', async () => {
  const folder = temporaryFiles(scratchFolder())
  await leave(folder, {
    'spillway-tmp-killed': DEAD,
    'spillway-tmp-alive': ALIVE,
    'spillway-tmp-elsewhere': ELSEWHERE,
    'spillway-tmp-long-ago': ELSEWHERE,
    'spillway-tmp-unmarked': null,
    'spillway-other': DEAD,
  })
  const long = Date.now() / 1000 - 8 * 24 * 60 * 60
  await utimes(join(folder, 'spillway-tmp-long-ago'), long, long)
  const mine = await temporaryFolder()
  const others = ['spillway-other', 'spillway-tmp-alive', 'spillway-tmp-elsewhere', 'spillway-tmp-unmarked']
  expect((await readdir(folder)).filter((name) => join(folder, name) !== mine.path)).toEqual(others)
  await mine.remove()
  expect(await readdir(folder)).toEqual(others)
})

it('forget removes the copies of dead processes, and names those of others', async () => {
  const here = await newWorkspace({})
  const folder = temporaryFiles(here.folder)
  Object.assign(here.env, { TMPDIR: folder })
  await leave(folder, { 'spillway-tmp-killed': DEAD, 'spillway-tmp-elsewhere': ELSEWHERE })
  await exportHere(here)
  await writeFile(join(here.folder, 'people.txt'), 'nobody@nowhere.example\n')
  const { stdout } = await exits(0, here.call('forget', '--identities', 'people.txt', '--yes'))
  expect(await readdir(folder)).toEqual(['spillway-tmp-elsewhere'])
  expect(stdout).toContain(join(folder, 'spillway-tmp-elsewhere'))
})

// Runs longer than any test.
const ENDLESS = 'SELECT count(*) FROM credentials, range(1000000000000)'

async function inBucket(): Promise<{ readonly here: Workspace; readonly folder: string }> {
  const { env } = await bucketHere()
  const here = await newWorkspace({ load: { path: `s3://${BUCKET}/acme` } }, {}, env)
  await exportHere(here)
  return { here, folder: temporaryFiles(here.folder) }
}

async function shardsIn(folder: string): Promise<number> {
  // A folder may be removed while it is read.
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  return names.filter((name) => name.endsWith('.parquet')).length
}

it('a signal during a query over object storage leaves no copy of a shard, and the next query removes those of a kill', async () => {
  const { here, folder } = await inBucket()
  Object.assign(here.env, { TMPDIR: folder })
  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGKILL', null],
  ] as const) {
    const query = start(['query', 'pipeline.yaml', ENDLESS], here.folder, here.env)
    while ((await shardsIn(folder)) === 0) await wait(10)
    query.child.kill(signal)
    expect((await query.result).code).toBe(code)
    expect(await shardsIn(folder)).toBe(signal === 'SIGKILL' ? 1 : 0)
  }
  const mine = await temporaryFolder()
  expect(await shardsIn(folder)).toBe(0)
  expect(await readdir(folder)).toHaveLength(1)
  expect(await readFile(join(mine.path, 'owner'), 'utf8')).toContain(`"pid":${process.pid}`)
  await mine.remove()
})
