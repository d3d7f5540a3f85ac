import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readCsv, readParquet, shardPaths } from '../support/read-shards.ts'
import { difference, expectedOfDomains, SAME } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com', 'quillmere.net']

const LOADS = [
  { format: 'parquet', partition_by: 'none', concurrency: 8 },
  { format: 'csv', partition_by: 'query', concurrency: 3 },
] as const

it.each(some(LOADS, 1))(
  '$format by $partition_by: many chains fill one shard after the other, which hold exactly shard_rows',
  async (load) => {
    const { concurrency, ...rest } = load
    const here = await newWorkspace({
      extract: {
        domains: DOMAINS,
        windows: { from: '2024-01-01', until: '2025-01-01', every: 'month' },
        page_size: 4,
        concurrency,
      },
      load: { ...rest, shard_rows: 37 },
    })
    const { summary } = await exits(0, here.run())
    const found = load.format === 'csv' ? await readCsv(here.output) : await readParquet(here.output)
    expect(difference(found, expectedOfDomains(here.sandbox, DOMAINS))).toEqual(SAME)

    const { shards } = await here.manifest()
    expect(summary.shards).toBe(shards.length)
    expect(summary.bytes).toBe(shards.reduce((sum, { bytes }) => sum + bytes, 0))
    const folders = byFolder(shards)
    expect(folders.size).toBe(load.partition_by === 'none' ? 1 : 2)
    for (const inFolder of folders.values()) {
      expect(inFolder.map(({ path }) => path.slice(path.lastIndexOf('/') + 1))).toEqual(
        inFolder.map((_, i) => `part-${String(i).padStart(5, '0')}.${load.format}`),
      )
      for (const { rows, partitions } of inFolder.slice(0, -1)) {
        expect(rows).toBe(37)
        expect(partitions.length).toBeGreaterThan(1)
      }
    }
    expect(await readdir(join(here.output, '_state/sealed')).catch(() => [])).toEqual([])
  },
)

function byFolder<T extends { readonly path: string }>(shards: readonly T[]): Map<string, T[]> {
  const folders = new Map<string, T[]>()
  for (const shard of shards) {
    const folder = shard.path.slice(0, shard.path.lastIndexOf('/'))
    folders.set(folder, [...(folders.get(folder) ?? []), shard])
  }
  return folders
}

it.each(some(['parquet', 'csv'], 1))(
  '%s: a partition without rows has no shard and no folder',
  async (format) => {
    const here = await newWorkspace({
      extract: {
        domains: ['scatterholt.com', 'nowhere.example'],
        windows: { from: '2023-11-01', until: '2024-03-01', every: 'month' },
      },
      load: { format },
    })
    const { summary } = await exits(0, here.run())
    expect(summary).toMatchObject({ partitions: { total: 8, done: 8 }, shards: 2 })
    expect(await readdir(join(here.output, 'credentials'))).toEqual(['query=domain.scatterholt.com'])
    expect((await shardPaths(here.output)).map((path) => path.split('/')[2])).toEqual([
      'import_window=2024-01-01',
      'import_window=2024-02-01',
    ])
  },
)
