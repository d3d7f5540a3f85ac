import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { exitCodeOf } from '../../src/cli/terminal/exit-code.ts'
import { type Clock, isExportError, systemClock } from '../../src/core/index.ts'
import { describeOwner, lockFileText } from '../../src/state/lock/lock-file.ts'
import { DuckdbWarehouse, parseTarget, type TargetWait } from '../../src/warehouse/index.ts'
import { OWN_COLUMNS } from '../../src/warehouse/table/table.ts'
import { temporaryFolder } from '../e2e/support/workspace.ts'

const TABLE = {
  schema: null,
  name: 'credentials',
  resource: 'credentials' as const,
  columns: [{ name: 'id', type: 'int64' as const, nullable: true, meaning: 'id' }, ...OWN_COLUMNS],
}

async function open(file: string, clock: Clock = systemClock, onWait: (wait: TargetWait) => void = () => {}) {
  return DuckdbWarehouse.open(file, { clock, stop: new AbortController().signal, onWait, threads: 1 })
}

/** Name and mode of every file in a folder. */
async function modesIn(folder: string): Promise<Record<string, string>> {
  const modes: Record<string, string> = {}
  for (const name of (await readdir(folder)).sort()) {
    modes[name] = ((await stat(join(folder, name))).mode & 0o777).toString(8)
  }
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

/** A clock on which each wait ends at once and counts as a minute. */
function fastClock(): Clock & { readonly waits: () => number } {
  let waits = 0
  return {
    now: () => Date.now(),
    monotonicMs: () => waits * 60_000,
    async sleep() {
      waits++
    },
    waits: () => waits,
  }
}

it('only its owner can read a file that a load creates, and the files beside it during the load', async () => {
  const before = process.umask(0o022)
  onTestFinished(() => void process.umask(before))
  const folder = temporaryFolder()
  const file = join(folder, 'leaks.db')
  const warehouse = await open(file)
  const table = await warehouse.hold(TABLE)
  await warehouse.prepare(table, { evolve: false })
  for (const path of ['a', 'b']) {
    const shard = { path, sha256: 'x', rows: 1000, bytes: 1, partitions: [path], imported_at: null }
    await warehouse.load(
      { shards: [shard], stale: [], forgotten: [] },
      {
        dataSet: { id: 'd', pipeline: 'p' },
        table,
        mode: 'append',
        loadedAt: '2024-07-01T00:00:00.000Z',
        rowsOf: () => ({ setup: [], select: `SELECT range, 'd', '${path}' FROM range(1000)` }),
      },
    )
    expect(await modesIn(folder)).toEqual({ 'leaks.db': '600', 'leaks.db.tmp': '700', 'leaks.db.wal': '600' })
  }
  await warehouse.close()
  expect(await modesIn(folder)).toEqual({ 'leaks.db': '600' })
  // A mode that the owner has set stays.
  await chmod(file, 0o640)
  await (await open(file)).close()
  expect(await modesIn(folder)).toEqual({ 'leaks.db': '640' })
})

it('folders of killed processes beside the file are removed by the next load, those of live ones and of other machines are not', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'leaks.db')
  const { pid, close } = await notebook(join(folder, 'other.db'))
  await close()
  const self = describeOwner(new Date())
  const left = {
    [`.leaks.db-${pid}-Ab12Cd`]: { ...self, pid: pid!, process_start: '1' },
    [`.leaks.db-${process.pid}-Ab12Cd`]: self,
    [`.leaks.db-${pid}-Remote`]: { ...self, pid: pid!, host: 'etl-2' },
    [`.leaks.db-${pid}-Reboot`]: { ...self, pid: pid!, boot: 'another' },
    [`.leaks.db-${pid}-OldOne`]: { ...self, pid: pid!, host: 'etl-2' },
    // Of a process that has made it just now.
    [`.leaks.db-${pid}-Newest`]: null,
    '.leaks.db-backup': null,
  }
  for (const [name, owner] of Object.entries(left)) {
    await mkdir(join(folder, name))
    if (owner !== null) await writeFile(join(folder, name, 'owner'), lockFileText(owner))
  }
  const weekAgo = Date.now() / 1000 - 8 * 24 * 60 * 60
  await utimes(join(folder, `.leaks.db-${pid}-OldOne`), weekAgo, weekAgo)
  await (await open(file)).close()
  const names = await readdir(folder)
  expect(names.filter((name) => name.startsWith('.')).sort()).toEqual(
    [
      `.leaks.db-${process.pid}-Ab12Cd`,
      `.leaks.db-${pid}-Remote`,
      `.leaks.db-${pid}-Reboot`,
      `.leaks.db-${pid}-Newest`,
      '.leaks.db-backup',
    ].sort(),
  )
})

it('the error about a file that cannot be created names it, with the reason', async () => {
  const folder = temporaryFolder()
  await expect(open(join(folder, 'nowhere/leaks.db'))).rejects.toThrow(/cannot use the file \(ENOENT\)/)
  await mkdir(join(folder, 'folder.db'))
  await expect(open(join(folder, 'folder.db'))).rejects.toMatchObject({ kind: 'target' })
})

it('a load waits for a file that another process has open, and names the process; after ten minutes exit 5', async () => {
  const file = join(temporaryFolder(), 'leaks.db')
  await (await open(file)).close()
  const other = await notebook(file)
  const who = `process ${other.pid} (node)`
  const said: TargetWait[] = []
  const clock = fastClock()
  const error = await open(file, clock, (wait) => said.push(wait)).catch((error: unknown) => error)
  if (!isExportError(error)) throw error
  expect(error.what).toBe(`The DuckDB file is open in ${who}, and was for 10 minutes`)
  expect(exitCodeOf(error, null)).toBe(5)
  expect(said).toEqual([{ holder: who, limitMs: 600_000 }])
  expect(clock.waits()).toBe(10)

  // A process that closes it in time.
  const leaving: Clock = {
    ...systemClock,
    sleep: async () => {
      await other.close()
    },
  }
  await (await open(file, leaving)).close()
})

it.each([
  ['duckdb://leaks.db', /duckdb:leaks\.db .* duckdb:\/leaks\.db/],
  ['duckdb:///data/leaks.db', /duckdb:data\/leaks\.db .* duckdb:\/data\/leaks\.db/],
])('%s is refused with the correct spelling: it would be a file in the root folder', (text, says) => {
  const parse = () => parseTarget(text, '/home/me')
  expect(parse).toThrow(says)
  expect(parse).toThrow(expect.objectContaining({ kind: 'config', where: '--to' }))
  expect(parseTarget('duckdb:/data/leaks.db', '/home/me')).toMatchObject({ file: '/data/leaks.db' })
})

it.each([
  ['leaks.db', '"leaks.db"; did you mean duckdb:leaks.db?'],
  ['mysql://db.example/leaks', '"mysql://db.example/leaks"'],
  ['mysql://me:hunter2@db.example/leaks', 'found mysql://'],
  ['me:hunter2@db.example', 'found an address without a scheme (not shown)'],
])('--to %s is refused, and shown unless it may hold a password', (text, told) => {
  const parse = () => parseTarget(text, '/home/me')
  expect(parse).toThrow(told)
  expect(parse).not.toThrow('hunter2')
})
