import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { tableStatements } from '../../src/index.ts'
import type { Fields } from '../run/world.ts'
import { itemsOf, type TableWorld, tableWorld } from './world.ts'

const PROJECT = join(import.meta.dirname, 'clickhouse')

beforeAll(() => {
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund'], { cwd: PROJECT, stdio: 'ignore' })
}, 600_000)

/** The rows of each statement, by ClickHouse in a process of its own. */
function ask(world: TableWorld, ...statements: readonly string[]): unknown[][] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(PROJECT, 'query.mjs')], {
    // ClickHouse reads files below its working directory.
    cwd: world.folder,
    input: JSON.stringify(statements),
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown[])
}

const VALUES = [
  'plain',
  ' blank before',
  'blank after ',
  '\ttab before',
  "'quoted'",
  '"quoted"',
  '',
  'a,b',
  'line\nbreak',
  'ümlaut 😀',
]

/** Credentials with odd values, over three months. */
function oddItems(first = 1): Fields[] {
  const days = VALUES.map((_, i) => `2024-0${(i % 3) + 1}-1${i % 10}`)
  return itemsOf(...days).map((item, i) => ({
    ...item,
    id: i === 0 ? Number.MAX_SAFE_INTEGER : first + i,
    hash: i === 9 ? null : VALUES[i],
    event_uid: i % 2 === 0 ? VALUES[i] : null,
    source: { ...(item.source as object), pii_tags: i % 2 === 0 ? ['a', VALUES[i], null] : null },
  }))
}

const EXTRA = ['event_uid', 'source_pii_tags']

/** A hash of every column over all rows, of each source. */
function hashes(world: TableWorld, columns: readonly string[], sources: readonly string[]): unknown[][] {
  const sums = columns.map((name) => `toString(sum(cityHash64(toString(${name}), id)))`).join(', ')
  return ask(world, ...sources.map((source) => `SELECT count(), ${sums} FROM ${source}`))
}

it.each([[['query', 'window']], [['query']], ['none']] as const)(
  'both tables give every value of the files, with folders by %s, and older snapshots theirs',
  async (partition_by) => {
    const world = await tableWorld(oddItems(), {
      table_formats: ['iceberg', 'delta'],
      partition_by: partition_by as never,
    })
    world.transform = { extra_columns: EXTRA as never, secret: 'partial' }
    world.until = '2024-03-01'
    await world.run()
    const older = (await world.metadata())['current-snapshot-id']
    world.until = '2024-04-01'
    await world.run()
    const { columns } = (await world.manifest()) as unknown as { columns: { name: string }[] }
    const [iceberg, delta, files] = hashes(
      world,
      columns.map(({ name }) => name),
      [
        "icebergLocal('out/_iceberg')",
        `deltaLakeLocal('${world.out}')`,
        "file('out/credentials/**/*.parquet', Parquet)",
      ],
    )
    expect(iceberg).toEqual(files)
    expect(delta).toEqual(files)
    const [then] = ask(
      world,
      `SELECT count() FROM icebergLocal('out/_iceberg') SETTINGS iceberg_snapshot_id = ${older}`,
    )
    expect(Number((then![0] as unknown[])[0])).toBeLessThan(VALUES.length)
    // Bounds leave out files, never rows.
    for (const source of ["icebergLocal('out/_iceberg')", `deltaLakeLocal('${world.out}')`]) {
      const [found] = ask(
        world,
        `SELECT count() FROM ${source} WHERE imported_at >= '2024-02-11 08:00:00.123456' AND imported_at <= '2024-02-11 08:00:00.123456'`,
      )
      expect(found).toEqual([[1]])
    }
  },
)

it('a run that replaces rows and adds columns shows in both tables', async () => {
  const world = await tableWorld(oddItems())
  await world.run()
  world.service.items = oddItems(100)
  world.transform = { extra_columns: EXTRA as never }
  await world.run({ redo: ['*'] })
  const [iceberg, delta, files] = hashes(
    world,
    ['id', 'event_uid', 'source_pii_tags', 'imported_at'],
    [
      "icebergLocal('out/_iceberg')",
      `deltaLakeLocal('${world.out}')`,
      "file('out/credentials/**/*.parquet', Parquet)",
    ],
  )
  expect(iceberg).toEqual(files)
  expect(delta).toEqual(files)
})

it('a data set without a row is a table without a row', async () => {
  const world = await tableWorld([])
  await world.run()
  expect(
    ask(
      world,
      "SELECT count() FROM icebergLocal('out/_iceberg')",
      `SELECT count() FROM deltaLakeLocal('${world.out}')`,
    ),
  ).toEqual([[[0]], [[0]]])
})

it('what ddl prints is carried out: views over the tables, and CSV without a changed value', async () => {
  const world = await tableWorld(oddItems())
  await world.run()
  const mounts = tableStatements(await world.pipeline(), 'clickhouse')
  const views = [...mounts.matchAll(/CREATE VIEW [^;]*;/g)].map(([statement]) => statement.slice(0, -1))
  expect(views).toHaveLength(2)
  const counts = ask(
    world,
    ...views,
    'SELECT count() FROM credentials_iceberg',
    'SELECT count() FROM credentials_delta',
  )
  expect(counts.slice(2)).toEqual([[[10]], [[10]]])

  const csv = await tableWorld(oddItems(), { format: 'csv' })
  csv.transform = { secret: 'plaintext' }
  await csv.run({ allowPlaintext: true })
  const statements = tableStatements(await csv.pipeline(), 'clickhouse')
    .split(/;\n/)
    .map((each) => each.replace(/;$/, ''))
    .filter((each) => /CREATE|INSERT/.test(each))
  const [rows] = ask(csv, ...statements, 'SELECT hash FROM credentials ORDER BY identity_name').slice(-1)
  const expected = oddItems()
    .sort((a, b) => (String(a.identity_name) < String(b.identity_name) ? -1 : 1))
    .map(({ hash }) => [hash])
  expect(rows).toEqual(expected)
})
