import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { diskStore } from '../../src/disk/index.ts'
import { tableProblems, updateTables } from '../../src/open-tables/index.ts'

const COLUMNS = [{ name: 'domain', type: 'text' as const, nullable: true, meaning: 'a text' }]

it('a table whose last shard goes names none, and one of other bytes is found', async () => {
  const root = await mkdtemp(join(tmpdir(), 'spillway-tables-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const store = await diskStore({ root, fileMode: 0o600, dirMode: 0o700 }).own('abcdefabcdef')
  const shard = {
    path: 'credentials/part-00000.parquet',
    rows: 1,
    bytes: 1000,
    sha256: '1'.padStart(64, '0'),
  }
  const formats = ['iceberg', 'delta'] as const
  const settings = { formats, root: `file://${root}`, snapshots: 1, dataSetId: 'an-id' }
  const update = { statisticsOf: async () => [], nowMs: 1, rebuild: false, warn: () => {} }
  const follow = (shards: readonly (typeof shard)[]) => {
    const content = { columns: COLUMNS, shards, manifestSha256: '', forgottenMs: null, runId: null }
    return updateTables(store, settings, content, update)
  }
  await follow([shard])
  expect(await tableProblems(store, settings, [shard])).toEqual([])
  const other = { ...shard, sha256: '2'.padStart(64, '0') }
  expect(await tableProblems(store, settings, [other])).toHaveLength(2)
  const states = await follow([])
  expect(states.map(({ shards }) => shards.size)).toEqual([0, 0])
  expect(await tableProblems(store, settings, [])).toEqual([])
  await store.release()
})
