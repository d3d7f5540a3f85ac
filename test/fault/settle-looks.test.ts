import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { readCheckpoint } from '../../src/state/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { writeKeyPair } from '../support/key-pair.ts'
import { shardPaths } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'
import { missingRows, rowsOf } from './rows.ts'
import { diskFault } from './support.ts'

const WINDOWS = { from: '2024-01-01', until: '2024-05-01', every: 'month' }
const parts = (load: PipelineParts['load'] = {}): PipelineParts => ({
  extract: { domains: ['scatterholt.com', 'quillmere.net'], windows: WINDOWS, page_size: 20 },
  transform: { max_quarantined: '100%' },
  load: { format: 'csv', partition_by: ['query'], ...load },
})
const COMPACT = ['compact', '--min-shards', '2']
const NO_PRUNE = ['prune', '--older-than', '1200mo', '--yes']

const isMarked = ({ output }: Workspace): boolean => existsSync(join(output, '_SUCCESS'))

async function smallShards(load: PipelineParts['load'] = {}): Promise<Workspace> {
  const here = await exportedWorkspace(parts({ ...load, shard_rows: 5 }))
  await here.write(parts({ ...load, shard_rows: 5000 }))
  await exits(0, here.run())
  return here
}

const call = (here: Workspace, [command = '', ...flags]: readonly string[]) => here.call(command, ...flags)

const onDiskThat = (fault: string, here: Workspace) => here.with(diskFault(here.output, fault))

async function killedAt(here: Workspace, at: string, words: readonly string[]): Promise<void> {
  const ended = await call(onDiskThat(`kill:${at}`, here), words)
  expect(ended.signal, `${at}\n${ended.stderr}`).toBe('SIGKILL')
}

test('_SUCCESS does not come back beside a shard that is gone, whatever the command', async () => {
  const here = await exportedWorkspace(parts({ partition_by: ['query', 'window'] }))
  const [first] = await shardPaths(here.output)
  await rm(join(here.output, first!))
  await rm(join(here.output, '_SUCCESS'))
  for (const words of [NO_PRUNE, COMPACT]) {
    await exits(1, call(here, words), /A shard is missing .*--redo/)
    expect(isMarked(here), words[0]).toBe(false)
  }
})

test('where a sealed shard is gone before it was published, what it replaces stays', async () => {
  const here = await smallShards()
  const before = await shardPaths(here.output)
  const rows = await rowsOf(here.output)
  const folder = dirname(before[0]!)
  const next = before.filter((path) => path.startsWith(`${folder}/`)).length
  await killedAt(here, `link ${folder}/part-${String(next).padStart(5, '0')}.csv`, COMPACT)
  const sealed = join(here.output, '_state/sealed')
  for (const name of await readdir(sealed)) await rm(join(sealed, name))
  for (const words of [NO_PRUNE, COMPACT, ['run']]) {
    await exits(1, call(here, words))
    expect(isMarked(here), words[0]).toBe(false)
    const left = await shardPaths(here.output)
    for (const path of before) expect(left, words[0]).toContain(path)
    expect(missingRows(rows, await rowsOf(here.output))).toBe(0)
  }
})

test('the shards of a compact that was killed are looked at like others', async () => {
  const here = await smallShards()
  const before = await shardPaths(here.output)
  await killedAt(here, 'rename _state/checkpoint.jsonl', COMPACT)
  const now = await shardPaths(here.output)
  await rm(join(here.output, now.find((path) => !before.includes(path))!))
  await exits(1, here.run(), /A shard is missing .*--redo/)
  expect(isMarked(here)).toBe(false)
})

test('a summary page that was not written is written by the next run, signed or not', async () => {
  const here = await exportedWorkspace(parts())
  const page = () => readFile(join(here.output, '_report.html'), 'utf8')
  await onDiskThat('eio:rename _report.html', here).call('run')
  writeKeyPair(here.folder)
  await exits(0, here.call('sign', '--key', 'key.pem'))
  await exits(0, here.run())
  const manifest = await readFile(join(here.output, '_manifest.json'))
  expect(await page()).toContain(createHash('sha256').update(manifest).digest('hex'))
})

test('a shard without rows that is gone is made again, without a request', async () => {
  const here = await newWorkspace({ ...parts(), extract: { domains: ['nobody.example'], windows: WINDOWS } })
  await exits(0, here.run())
  const [only] = await shardPaths(here.output)
  const bytes = await readFile(join(here.output, only!))
  await rm(join(here.output, only!))
  const sent = here.sandbox.requests.length
  await exits(0, here.run())
  expect(here.sandbox.requests).toHaveLength(sent)
  const [again, ...others] = await shardPaths(here.output)
  expect(others).toEqual([])
  expect(await readFile(join(here.output, again!))).toEqual(bytes)
  expect(isMarked(here)).toBe(true)
})

test('_SUCCESS of a narrower file goes before anything of a wider one is committed', async () => {
  const domains = ['scatterholt.com']
  const here = await exportedWorkspace({ ...parts(), extract: { ...parts().extract, domains } })
  expect(isMarked(here)).toBe(true)
  await here.write(parts())
  const scope = async (): Promise<unknown> => (await readCheckpoint(storeAt(here.output)))?.scope
  const before = await scope()
  await exits(1, onDiskThat('eio:rename _state/open.#', here).call('run'))
  expect(isMarked(here)).toBe(true)
  expect(await scope()).toEqual(before)
})

test('a Delta log that was being removed is begun anew by any command', async () => {
  const domains = ['scatterholt.com']
  const tables = parts({ format: 'parquet', table_formats: ['delta'] })
  const here = await newWorkspace({ ...tables, extract: { ...tables.extract, domains } })
  await exits(0, here.run())
  await here.write(tables)
  await exits(0, here.run())
  const log = join(here.output, '_delta_log')
  expect(await readdir(log)).toHaveLength(2)
  await rm(join(log, `${'0'.repeat(20)}.json`))
  await exits(0, call(here, COMPACT))
  expect(await readdir(log)).toEqual([`${'0'.repeat(20)}.json`])
  expect((await here.json('verify')).value).toMatchObject({ ok: true, problems: [] })
})
