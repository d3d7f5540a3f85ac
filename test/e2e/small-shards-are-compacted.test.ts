import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { treeHashes } from '../fault/support.ts'
import { metadataOf } from '../open-tables/world.ts'
import { BUCKET, bucketHere, mirror } from '../support/bucket.ts'
import { shardPaths, sql } from '../support/read-shards.ts'
import { exits, jsonLines } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, type PipelineParts, SMALL, type Workspace } from '../support/workspace.ts'

/** Folders by query alone, so that each run of two more months adds a shard to each. */
const parts = (until: string, load: PipelineParts['load'] = {}): PipelineParts => ({
  extract: { domains: SMALL.domains, windows: { from: '2024-01-01', until, every: 'month' } },
  load: { partition_by: ['query'], ...load },
})

const ENDS = ['2024-03-01', '2024-05-01', '2024-07-01', '2024-09-01', '2024-11-01']

/** A data set of a run for each end: as many small shards in each of two folders. */
async function ofRuns(
  ends: readonly string[],
  load: PipelineParts['load'] = {},
  env = {},
): Promise<Workspace> {
  const here = await newWorkspace({}, { sources: 3 }, env)
  for (const end of ends) {
    await here.write(parts(end, load))
    await exits(0, here.run())
  }
  return here
}

/** What is in the dictionaries of Parquet shards. */
const encodings = ({ output }: Workspace) =>
  sql(
    `SELECT DISTINCT path_in_schema, encodings FROM parquet_metadata('${output}/credentials/**/*.parquet')
    WHERE path_in_schema LIKE 'source_%_at' ORDER BY ALL`,
  )

it.each(some(['parquet', 'csv'], 1))(
  'shards of %s are written together by folder, with all rows, by no request; readers of tables see the same rows',
  async (format) => {
    const isParquet = format === 'parquet'
    const tables = isParquet ? { table_formats: ['iceberg', 'delta'] } : {}
    const here = await ofRuns(ENDS, { format, ...tables })
    const [rows, sent] = [await here.rows(), here.sandbox.requests.length]
    const before = await here.manifest()
    const encoded = isParquet ? await encodings(here) : []

    const dry = await treeHashes(here.output)
    const planned = await here.json('compact', '--dry-run')
    expect(planned.value).toMatchObject({ folders: 2, shards: { before: 10, after: 2 }, rows: rows.length })
    expect(await treeHashes(here.output)).toEqual(dry)

    const { value } = await exits(0, here.json('compact'))
    expect(value).toMatchObject({ folders: 2, shards: { before: 10, after: 2 }, rows: rows.length })
    expect(await shardPaths(here.output)).toHaveLength(2)
    await here.expectExactly(rows)
    expect(here.sandbox.requests).toHaveLength(sent)
    const after = await here.manifest()
    expect(after.totals).toMatchObject({ rows: before.totals.rows, shards: 2 })
    expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
    expect((await here.json('verify', '--complete')).value).toMatchObject({ ok: true, complete: true })
    if (!isParquet) return

    expect(encoded).toHaveLength(2)
    expect(await encodings(here)).toEqual(encoded)
    // Iceberg by a replace, Delta by a commit without a change of data.
    expect((await metadataOf(here.output)).snapshots.at(-1)!.summary.operation).toBe('replace')
    const log = join(here.output, '_delta_log')
    const actions = jsonLines(await readFile(join(log, (await readdir(log)).sort().at(-1)!), 'utf8'))
    const files = actions.flatMap(({ add, remove }) => add ?? remove ?? [])
    expect(files.map(({ dataChange }) => dataChange)).toEqual(Array(12).fill(false))
  },
)

it('shards of one query are written together, as many as fit, and a second time there is nothing to do', async () => {
  // All shards in one folder: those of one query come in turns with those of the other.
  const load = { format: 'csv', partition_by: 'none', shard_rows: 50 }
  const here = await newWorkspace(parts(ENDS[0]!, load))
  for (const end of ENDS) {
    await here.write(parts(end, load))
    for (const domain of SMALL.domains!) expect((await here.run('--domain', domain)).code).toBe(0)
  }
  const rows = await here.rows()
  const queriesIn = (partitions: readonly string[]) => new Set(partitions.map((key) => key.split('/')[0]))
  for (const { partitions } of (await here.manifest()).shards) expect(queriesIn(partitions).size).toBe(1)
  // The path alone is enough: the data set knows how large its shards are.
  const compact = async (least = '2') =>
    JSON.parse((await exits(0, here.cli('compact', 'out', '--min-shards', least, '--json'))).stdout)
  expect(await compact('99')).toMatchObject({ shards: { before: 0, after: 0 } })
  const { shards } = await compact()
  expect(shards.after).toBeGreaterThan(2)
  const after = await here.manifest()
  for (const shard of after.shards) {
    expect(queriesIn(shard.partitions).size).toBe(1)
    expect(shard.rows).toBeLessThanOrEqual(50)
  }
  await here.expectExactly(rows)
  const tree = await treeHashes(here.output)
  expect(await compact()).toMatchObject({ shards: { before: 0, after: 0 } })
  const unchanged = (hashes: ReadonlyMap<string, string>) =>
    [...hashes].filter(([path]) => !path.startsWith('_state'))
  expect(unchanged(await treeHashes(here.output))).toEqual(unchanged(tree))
})

it.runIf(THOROUGH)(
  'each small shard of a bucket is read by one request, and as many as fill one shard become one',
  async () => {
    const { double, env } = await bucketHere()
    const load = { path: `s3://${BUCKET}/team` }
    const here = await ofRuns(ENDS.slice(0, 2), load, env)
    await mirror(double, 'team', here.output)
    const rows = new Map<string, number>()
    for (const shard of (await here.manifest()).shards) {
      const query = shard.path.replace(/part-.*/, '')
      rows.set(query, (rows.get(query) ?? 0) + shard.rows)
    }
    await here.write(parts(ENDS[1]!, { ...load, shard_rows: Math.max(...rows.values()) }))
    double.log.length = 0
    const reads = (): number => double.requests({ operation: 'GetObject', key: /part-0000[01]/ }).length
    await writeFile(join(here.folder, 'people.txt'), 'nobody@example.com\n')
    expect((await here.call('forget', '--dry-run', '--identities', 'people.txt')).code).toBe(0)
    expect(reads()).toBe(4)
    double.log.length = 0
    const { code, value } = await here.json('compact', '--min-shards', '2')
    expect([code, value]).toMatchObject([0, { shards: { before: 4, after: 2 } }])
    expect(reads()).toBe(4)
    // What the data set is, and under the lock what is to be done.
    expect(double.requests({ operation: 'GetObject', key: /checkpoint\.jsonl$/ })).toHaveLength(2)
  },
)

const READERS: readonly [string, ...string[]][] = [
  ['load', '--to', 'duckdb:leaks.db', '--json'],
  ['query', 'SELECT count(*) AS rows FROM credentials', '--json'],
  ['match', '--directory', 'people.csv', '--format', 'json'],
]

it.each(some(READERS, 2))('%s begins again where a compact takes its shards away', async (name, ...flags) => {
  const { double, env } = await bucketHere()
  const here = await ofRuns(ENDS.slice(0, 2), { path: `s3://${BUCKET}/acme` }, env)
  const anyone = 'SELECT min(identity_name) AS mail FROM credentials'
  const { stdout } = await exits(0, here.call('query', anyone, '--csv'))
  await writeFile(join(here.folder, 'people.csv'), stdout)
  const undisturbed = await exits(0, here.call(name, ...flags))
  let isCompacted = false
  const compact = async (): Promise<void> => {
    isCompacted = true
    await exits(0, here.call('compact', '--min-shards', '2'))
  }
  double.cues.before({ operation: 'GetObject', key: /part-\d+\.parquet$/ }, compact)
  const again = flags.map((word) => word.replace('leaks.db', 'again.db'))
  const disturbed = await exits(0, here.call(name, ...again))
  expect(isCompacted).toBe(true)
  const [found, wanted] = [disturbed, undisturbed].map(({ stdout }) => JSON.parse(stdout))
  expect(found.rows ?? found).toEqual(wanted.rows ?? wanted)
})
