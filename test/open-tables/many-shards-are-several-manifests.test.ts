import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tableProblems } from '../../src/open-tables/index.ts'
import { storeAt } from '../disk/temporary-store.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { type EntryRow, type ManifestRow, type Marks, readAvro, updateTo } from './world.ts'

const SHARDS = 2500
const COLUMNS = Array.from({ length: 15 }, (_, i) => (i === 0 ? 'domain' : `column_${i}`)).map((name) => ({
  name,
  type: 'text' as const,
  nullable: true,
  meaning: 'a text',
}))

/** Tables of made-up shards, in a folder of their own. */
async function tables() {
  const root = scratchFolder()
  const store = await storeAt(root).own('abcdefabcdef')
  const formats = ['iceberg', 'delta'] as const
  return { root, store, settings: { formats, root: `file://${root}`, snapshots: 1, dataSetId: 'an-id' } }
}

it('a manifest holds up to 1,000 shards, and the last is filled up', async () => {
  const { root, store, settings } = await tables()
  const bounds = { min: 'a.example', max: 'z.example' }
  const statistics = COLUMNS.map(({ name, type }) => ({ name, type, bytes: 1000, nulls: 1, bounds }))
  const all = Array.from({ length: SHARDS + 1 }, (_, i) => ({
    path: `credentials/query=domain.acme${i}.com/import_window=all/part-00000.parquet`,
    rows: 100,
    bytes: 20_000,
    sha256: String(i).padStart(64, '0'),
  }))
  const marks: Marks = new Map()
  for (const shards of [all.slice(0, SHARDS), all]) {
    const states = await updateTo(store, settings, shards, COLUMNS, statistics, marks)
    for (const state of states) expect([...state.shards.values()]).toEqual(shards)
  }
  await store.release()
  const folder = join(root, '_iceberg/metadata')
  const [list] = (await readdir(folder)).filter((name) => name.endsWith('-list.avro'))
  const sizes: number[] = []
  const paths: string[] = []
  for (const { manifest_path, min_sequence_number } of await readAvro<ManifestRow>(join(folder, list!))) {
    const entries = await readAvro<EntryRow>(manifest_path.slice('file://'.length))
    sizes.push(entries.length)
    // By it engines leave out manifests. Of the last one, all but one shard came with the first snapshot.
    expect([min_sequence_number, entries[0]!.sequence_number]).toEqual([1, 1])
    paths.push(...entries.map(({ data_file }) => data_file.file_path))
    expect(entries[0]!.data_file.lower_bounds.map(({ value }) => value.toString())).toEqual(['a.example'])
  }
  expect(sizes).toEqual([1000, 1000, 501])
  expect(paths).toEqual(all.map(({ path }) => `file://${root}/${path}`))
})

it('a table whose last shard goes names none, and one of other bytes is found', async () => {
  const { store, settings } = await tables()
  const sha256 = '1'.padStart(64, '0')
  const shard = { path: 'credentials/part-00000.parquet', rows: 1, bytes: 1000, sha256 }
  const marks: Marks = new Map()
  await updateTo(store, settings, [shard], undefined, undefined, marks)
  expect(await tableProblems(store, settings, [shard], marks)).toEqual([])
  const other = { ...shard, sha256: '2'.padStart(64, '0') }
  expect(await tableProblems(store, settings, [other], marks)).toHaveLength(2)
  const states = await updateTo(store, settings, [], undefined, undefined, marks)
  expect(states.map(({ shards }) => shards.size)).toEqual([0, 0])
  expect(await tableProblems(store, settings, [], marks)).toEqual([])
  await store.release()
})
