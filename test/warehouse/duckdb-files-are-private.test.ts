import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { exitCodeOf } from '../../src/cli/terminal/exit-code.ts'
import { type Clock, systemClock } from '../../src/core/index.ts'
import { DuckdbWarehouse, parseTarget, type TargetWait } from '../../src/warehouse/index.ts'
import { refusal } from '../disk/errors.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { exits, start } from '../support/run-cli.ts'

async function open(file: string, clock: Clock = systemClock, onWait: (wait: TargetWait) => void = () => {}) {
  return DuckdbWarehouse.open(file, { clock, stop: new AbortController().signal, onWait })
}

async function modesIn(folder: string): Promise<Record<string, string>> {
  const modes: Record<string, string> = {}
  for (const name of (await readdir(folder)).sort())
    modes[name] = ((await stat(join(folder, name))).mode & 0o777).toString(8)
  return modes
}

/** A process that has a DuckDB file open, as a notebook would. */
async function notebook(file: string): Promise<{ readonly pid: number; close(): Promise<void> }> {
  const duckdb = createRequire(import.meta.url).resolve('@duckdb/node-api')
  const script = `require(${JSON.stringify(duckdb)}).DuckDBInstance.create(${JSON.stringify(file)}).then(async (it) => {
    globalThis.connection = await it.connect(); console.log('open'); setInterval(() => {}, 1e6) })`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return {
    pid: child.pid!,
    async close() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

/** A clock on which each wait ends at once and counts as ten seconds. */
function fastClock(): Clock & { readonly waits: () => number } {
  let waits = 0
  return {
    now: () => Date.now(),
    monotonicMs: () => waits * 10_000,
    async sleep() {
      waits++
    },
    waits: () => waits,
  }
}

it('only its owner can read a file that load creates, and what DuckDB puts beside it', async () => {
  const here = await exportedWorkspace({ extract: { domains: ['quillmere.net'] } })
  const words = ['load', 'pipeline.yaml', '--to', 'duckdb:db/leaks.db']
  const folder = join(here.folder, 'db')
  await mkdir(folder)
  await exits(0, here.cli(...words))
  expect(await modesIn(folder)).toEqual({ 'leaks.db': '600' })
  // A mode that the owner has set stays.
  await chmod(join(folder, 'leaks.db'), 0o640)
  await exits(0, here.cli(...words))
  expect(await modesIn(folder)).toEqual({ 'leaks.db': '640' })

  const log = join(folder, 'leaks.db.wal')
  // On a busy machine a load may end before the kill.
  while (!existsSync(log)) {
    await rm(join(folder, 'leaks.db'))
    const { child, result } = start(words, here.folder, here.env)
    while (!existsSync(log) && child.exitCode === null) await wait(1)
    child.kill('SIGKILL')
    await result
  }
  expect(Object.values(await modesIn(folder))).toEqual(['600', '600'])
})

it('a load waits for a file that another process has open, and names the process; after half a minute exit 5', async () => {
  const file = join(scratchFolder(), 'leaks.db')
  await (await open(file)).close()
  const other = await notebook(file)
  const who = `process ${other.pid} (node)`
  const said: TargetWait[] = []
  const clock = fastClock()
  const error = await refusal(open(file, clock, (wait) => said.push(wait)))
  expect(error.what).toBe(`The DuckDB file is open in ${who}, and was for half a minute`)
  expect(exitCodeOf(error, null)).toBe(5)
  expect(said).toEqual([{ holder: who, limitMs: 30_000 }])
  expect(clock.waits()).toBe(3)

  // A process that closes it in time.
  await (await open(file, { ...systemClock, sleep: () => other.close() })).close()
})

it.each([
  // It would be a file in the root folder.
  ['duckdb://leaks.db', /duckdb:leaks\.db .* duckdb:\/leaks\.db/],
  ['leaks.db', '"leaks.db"; did you mean duckdb:leaks.db?'],
  ['mysql://me:hunter2@db.example/leaks', 'found mysql://'],
  ['postgres://me:hunter2@127.0.0.1/db', 'PGPASSWORD'],
  ['me:hunter2@db.example', 'found an address without a scheme (not shown)'],
  ['duckdb:md:leaks', 'neither MotherDuck nor another address can be loaded into'],
  ['duckdb:what?/leaks.db', 'at a path without ?'],
])('--to %s is refused with what to write, and shown unless it may hold a password', (text, told) => {
  const parse = () => parseTarget(text, '/home/me')
  expect(parse).toThrow(told)
  expect(parse).toThrow(expect.objectContaining({ kind: 'config', where: '--to' }))
  expect(parse).not.toThrow('hunter2')
  expect(parseTarget('duckdb:/data/leaks.db', '/home/me')).toMatchObject({ file: '/data/leaks.db' })
})
