import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { DataSet, tableStatements } from '../../src/data-set/index.ts'
import { ACCOUNT, KEY } from '../azure/azurite.ts'
import type { Fields } from '../run/world.ts'
import { BUCKET, bucketOf, startBucket } from '../support/bucket.ts'
import { startContainer } from '../support/container.ts'
import { monthsUntil, newWorkspace } from '../support/workspace.ts'
import { CHANGES, cataloged, TOKEN } from './cataloged.ts'
import { ask } from './clickhouse/ask.ts'
import { itemsOf, type TableWorld, tableWorld } from './world.ts'

const VALUES = [
  ...['plain', ' blank before', 'blank after ', '\ttab before', "'quoted'", '"quoted"', '', 'a,b'],
  ...['line\nbreak', 'ümlaut 😀'],
]

/** Credentials with odd values, over three months. */
function oddItems(first = 1): Fields[] {
  const days = VALUES.map((_, i) => `2024-0${(i % 3) + 1}-1${i % 10}`)
  return itemsOf(...days).map((item, i) => ({
    ...item,
    id: i === 0 ? Number.MAX_SAFE_INTEGER : first + i,
    hash: i === 9 ? null : VALUES[i],
    event_uid: i % 2 === 0 ? VALUES[i] : null,
    source: { ...(item.source as object), pii_tags: i % 2 === 0 ? ['a', VALUES[i]] : null },
  }))
}

const EXTRA = ['event_uid', 'source_pii_tags']

/** A hash of every column over all rows, of each source. */
function hashes(
  { folder }: Pick<TableWorld, 'folder'>,
  columns: readonly string[],
  sources: readonly string[],
): Promise<unknown[][][]> {
  const sums = columns.map((name) => `toString(sum(cityHash64(toString(${name}), id)))`).join(', ')
  const statements = sources.map((source) => `SELECT count(), ${sums} FROM ${source}`)
  return ask(folder, statements)
}

const tablesOf = ({ out }: TableWorld) =>
  ["icebergLocal('out/_iceberg')", `deltaLakeLocal('${out}')`] as const

/** Both tables hold these rows, as the files do. */
async function expectSame(world: TableWorld, rows: number): Promise<void> {
  const { columns } = (await world.manifest()) as unknown as { columns: { name: string }[] }
  const names = columns.map(({ name }) => name)
  const sources = [...tablesOf(world), "file('out/credentials/**/*.parquet', Parquet)"]
  const [iceberg, delta, files] = await hashes(world, names, sources)
  expect(Number(files![0]![0])).toBe(rows)
  expect([iceberg, delta]).toEqual([files, files])
}

it.each([[['query', 'window']], [['query']], ['none']] as const)(
  'both tables give every value of the files, also of replaced ones, with folders by %s, and older snapshots theirs',
  async (partition_by) => {
    const world = await tableWorld(oddItems(), {
      table_formats: ['iceberg', 'delta'],
      partition_by: partition_by as never,
    })
    world.transform = { extra_columns: EXTRA as never, secret: 'partial' }
    await world.runUntil('2024-03-01')
    const older = (await world.metadata())['current-snapshot-id']
    await world.runUntil('2024-04-01')
    await expectSame(world, VALUES.length)
    const [then] = await ask(world.folder, [
      `SELECT count() FROM icebergLocal('out/_iceberg') SETTINGS iceberg_snapshot_id = ${older}`,
    ])
    expect(Number(then![0]![0])).toBeLessThan(VALUES.length)
    // Bounds leave out files, never rows.
    for (const source of tablesOf(world)) {
      const [found] = await ask(world.folder, [
        `SELECT count() FROM ${source} WHERE imported_at >= '2024-02-11 08:00:00.123456' AND imported_at <= '2024-02-11 08:00:00.123456'`,
      ])
      expect(found).toEqual([[1]])
    }
    world.service.items = oddItems(100)
    await world.run({ redo: ['*'] })
    await expectSame(world, VALUES.length)
  },
)

it('a data set without a row is a table without a row', async () => {
  const world = await tableWorld([])
  await world.run()
  const counts = tablesOf(world).map((source) => `SELECT count() FROM ${source}`)
  expect(await ask(world.folder, counts)).toEqual([[[0]], [[0]]])
})

it('what ddl prints is carried out: views over the tables, and CSV without a changed value', async () => {
  const world = await tableWorld(oddItems())
  await world.run()
  const mounts = tableStatements(await DataSet.of(await world.pipeline()), 'clickhouse')
  const views = [...mounts.matchAll(/CREATE VIEW [^;]*;/g)].map(([statement]) => statement.slice(0, -1))
  expect(views).toHaveLength(2)
  const counts = await ask(world.folder, [
    ...views,
    'SELECT count() FROM credentials_iceberg',
    'SELECT count() FROM credentials_delta',
  ])
  expect(counts.slice(2)).toEqual([[[10]], [[10]]])

  const csv = await tableWorld(oddItems(), { format: 'csv' })
  csv.transform = { secret: 'plaintext' }
  await csv.run({ allowPlaintext: true })
  const statements = tableStatements(await DataSet.of(await csv.pipeline()), 'clickhouse')
    .split(/;\n/)
    .map((each) => each.replace(/;$/, ''))
    .filter((each) => /CREATE|INSERT/.test(each))
  const answers = await ask(csv.folder, [
    ...statements,
    'SELECT hash FROM credentials ORDER BY identity_name',
  ])
  const [rows] = answers.slice(-1)
  const expected = oddItems()
    .sort((a, b) => (String(a.identity_name) < String(b.identity_name) ? -1 : 1))
    .map(({ hash }) => [hash])
  expect(rows).toEqual(expected)
})

const s3 = async () => {
  // ClickHouse takes an address that names no region for that of `us-east-1`.
  const { double, env } = await startBucket({ region: 'us-east-1' })
  const reached = (name: string) => (path: string) =>
    `${name}('${double.endpoint}/${BUCKET}/${path}', '${env.AWS_ACCESS_KEY_ID}', '${env.AWS_SECRET_ACCESS_KEY}')`
  return { bucket: bucketOf(double, env), iceberg: reached('icebergS3'), delta: reached('deltaLake') }
}

const azure = async () => {
  const bucket = await startContainer()
  const { AZURE_STORAGE_CONNECTION_STRING: connection } = bucket.env
  const endpoint = /BlobEndpoint=([^;]+)/.exec(connection!)![1]!.replace(`/${ACCOUNT}`, '')
  const reached = (name: string) => (path: string) =>
    `${name}('${endpoint}/${ACCOUNT}', '${BUCKET}', '${path}', '${ACCOUNT}', '${KEY}')`
  return { bucket, iceberg: reached('icebergAzure'), delta: reached('deltaLakeAzure') }
}

it.each([
  ['S3', s3],
  ['Azure Blob storage', azure],
] as const)('both tables are read where they are: %s', async (_, start) => {
  const { bucket, iceberg, delta } = await start()
  onTestFinished(() => bucket.close())
  for (const [name, value] of Object.entries(bucket.env)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  const here = await newWorkspace(
    {
      extract: { domains: ['scatterholt.com'], windows: monthsUntil('2024-03-01') },
      load: { path: `${bucket.address}/team`, table_formats: ['iceberg', 'delta'] },
    },
    {},
    bucket.env,
  )
  expect(await here.run()).toMatchObject({ code: 0 })
  await bucket.mirror('team', join(here.folder, 'team'))
  const [files, ...tables] = await hashes(
    here,
    ['domain', 'identity_name', 'hash', 'imported_at', 'source_name'],
    ["file('team/credentials/**/*.parquet', Parquet)", iceberg('team/_iceberg'), delta('team')],
  )
  expect(tables).toEqual([files, files])
})

const ROWS = 800

it('ClickHouse reads through the catalog what the data set holds, after each kind of change', async () => {
  // Over the first three months of a year.
  const days = Array.from({ length: ROWS }, (_, i) => `2024-0${(i % 3) + 1}-${10 + (i % 18)}`)
  const { world, catalog } = await cataloged({}, itemsOf(...days))
  world.load = { ...world.load, shard_rows: 50 }
  // The word behind the address is of files on this disk; for a bucket these would be its keys.
  const database = `CREATE DATABASE lake ENGINE = DataLakeCatalog('${catalog.url}/v1', 'Parquet')
    SETTINGS catalog_type = 'rest', warehouse = 'lake', auth_header = 'Authorization: Bearer ${TOKEN}'`
  const counted = async () => {
    const results = await ask(world.folder, [
      'SET allow_experimental_database_iceberg = 1',
      database,
      'SELECT count(), uniqExact(identity_name), sum(id) FROM lake.`leaks.acme`',
      // What the files hold.
      "SELECT count(), uniqExact(identity_name), sum(id) FROM file('out/credentials/**/*.parquet', Parquet)",
    ])
    expect(results[2]).toEqual(results[3])
    return Number((results[2] as unknown[][])[0]![0])
  }
  for (const [change, rows] of [
    ['a run', ROWS],
    ['redo', ROWS],
    ['forget', ROWS - 1],
    ['compact', ROWS - 1],
    ['prune', ROWS - Math.ceil(ROWS / 3)],
  ] as const) {
    await CHANGES[change](world)
    expect(await counted(), change).toBe(rows)
  }
})
