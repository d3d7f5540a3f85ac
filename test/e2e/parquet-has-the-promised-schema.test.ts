import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { encoderDigest } from '../../src/package/encoder-build.ts'
import { version } from '../../src/package/index.ts'
import { metadataOf } from '../load/parquet-pages.ts'
import { shardPaths, sql } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { startSandbox } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace, SMALL } from '../support/workspace.ts'

const SECOND_ENDPOINT = {
  include: ['known_password_id', 'auth_domains', 'urls'],
  domains: ['scatterholt.com'],
}

type Promised = readonly [name: string, type: string, nullable: boolean]
const promised = (timestamp: string): readonly Promised[] => [
  ['id', 'INT64', false],
  ['domain', 'STRING', true],
  ['identity_name', 'STRING', false],
  ['hash', 'STRING', true],
  ['hash_type', 'STRING', true],
  ['imported_at', timestamp, false],
  ['known_password_id', 'STRING', true],
  ['source_id', 'STRING', false],
  ['source_name', 'STRING', true],
  ['source_description_en', 'STRING', true],
  ['source_description_fr', 'STRING', true],
  ['source_is_alert_enabled', 'BOOLEAN', true],
  ['source_breached_at', timestamp, true],
  ['source_leaked_at', timestamp, true],
  ['query_type', 'STRING', false],
  ['query_value', 'STRING', false],
  ['auth_domains', 'LIST<STRING>', true],
  ['urls', 'LIST<STRING>', true],
]

it.each([
  { engine: 'columnar', unit: 'MICROS' },
  { engine: 'parquetjs-lite', unit: 'MILLIS' },
])(
  '$engine: types, nullability and order of all columns, in the file and in the manifest',
  async ({ engine, unit }) => {
    const here = await newWorkspace({ extract: SECOND_ENDPOINT, load: { engine } }, { records: 40 })
    await here.write({
      service: { search_path: `${here.sandbox.origin}/astp/v2/credentials/_search` },
      extract: SECOND_ENDPOINT,
      load: { engine },
    })
    await exits(0, here.run())
    const columns = promised(`TIMESTAMP(${unit}, UTC)`)
    const [path] = await shardPaths(here.output)
    expect(await columnsOf(join(here.output, path!))).toEqual(columns)
    expect((await here.manifest()).columns).toEqual(
      columns.map(([name, type, nullable]) => ({ name, type, nullable })),
    )
  },
)

/** The columns as the footer declares them, a list as one column. */
async function columnsOf(file: string): Promise<Promised[]> {
  const elements = await sql(`select name, type, repetition_type, num_children, converted_type, logical_type
    from parquet_schema('${file}')`)
  const columns: Promised[] = []
  const [root, ...rest] = elements
  let at = 0
  for (let column = 0; column < Number(root!.num_children); column++) {
    const { name, repetition_type, converted_type, type, logical_type } = rest[at]!
    columns.push([
      String(name),
      typeOf({ type, converted_type, logical_type }),
      repetition_type === 'OPTIONAL',
    ])
    at += converted_type === 'LIST' ? 3 : 1
  }
  expect(at).toBe(rest.length)
  return columns
}

function typeOf(element: Readonly<Record<string, unknown>>): string {
  const { type, converted_type, logical_type } = element
  if (converted_type === 'UTF8' && type === 'BYTE_ARRAY') return 'STRING'
  if (converted_type === 'LIST') return 'LIST<STRING>'
  const stamp = /^TIMESTAMP_(MICROS|MILLIS)$/.exec(String(converted_type))
  if (stamp === null) return String(type)
  expect(type).toBe('INT64')
  // Absent where the engine knows only the older annotation, which means UTC.
  if (logical_type !== null) expect(String(logical_type)).toMatch(/isAdjustedToUTC=(?:1|true)/)
  return `TIMESTAMP(${stamp[1]}, UTC)`
}

it('a footer has min/max statistics, and the sort order where rows have one', async () => {
  const extract = {
    queries: [
      { type: 'domain', fqdn: 'scatterholt.com' },
      { type: 'domain', fqdn: 'quillmere.net' },
      { type: 'secret', secret_env: 'LEAKED' },
    ],
  }
  const footersOf = async (
    load: Readonly<Record<string, unknown>>,
    env: Readonly<Record<string, string>>,
  ) => {
    const here = await newWorkspace({ extract, load }, { records: 60 }, env)
    await exits(0, here.run())
    const shards = await shardPaths(here.output)
    return Promise.all(
      shards.map(async (path) => {
        const file = join(here.output, path)
        const bounds =
          await sql(`select path_in_schema as name, stats_min_value as low, stats_max_value as high
          from parquet_metadata('${file}') where starts_with(path_in_schema, 'query_') order by all`)
        const sorted = metadataOf(await readFile(file)).row_groups.map((group) => group.sorting_columns)
        return { path, bounds: bounds.map(({ low, high }) => [low, high]), sorted }
      }),
    )
  }
  const leaked = await aSecret()
  const order = [{ column_idx: 5, descending: false, nulls_first: false }]
  expect(await footersOf({}, { LEAKED: leaked })).toEqual(
    [
      ['domain.quillmere.net', ['domain', 'domain'], ['quillmere.net', 'quillmere.net']],
      ['domain.scatterholt.com', ['domain', 'domain'], ['scatterholt.com', 'scatterholt.com']],
      ['secret.LEAKED', ['secret', 'secret'], [null, null]],
    ].map(([query, ...bounds]) => ({
      path: `credentials/query=${query}/import_window=all/part-00000.parquet`,
      bounds,
      sorted: [order],
    })),
  )
  // One shard holds the three queries one after the other, so its rows have no order.
  expect(await footersOf({ partition_by: 'none' }, { LEAKED: leaked })).toEqual([
    {
      path: 'credentials/part-00000.parquet',
      bounds: [
        ['domain', 'secret'],
        [null, null],
      ],
      sorted: [undefined],
    },
  ])
})

/** A secret that is among the sandbox's credentials. */
async function aSecret(): Promise<string> {
  const sandbox = await startSandbox({ ...SMALL, records: 60 })
  const [row] = sandbox.expected({ query: { type: 'domain', fqdn: 'scatterholt.com' } })
  await sandbox.close()
  return String(row!.hash)
}

it('folders become columns for engines that read Hive-style data sets', async () => {
  const here = await newWorkspace(
    {
      extract: {
        queries: [
          { type: 'keyword', keyword: 'a b/c=d' },
          { type: 'domain', fqdn: 'scatterholt.com' },
        ],
        windows: { from: '2024-01-01', until: '2024-01-01T12:00:00Z', every: '6h' },
      },
    },
    { records: 20_000 },
  )
  await exits(0, here.run())
  const found = await sql(`select query, import_window, count(*)::int as n, max(imported_at) as last
    from read_parquet('${here.output}/credentials/**/*.parquet', hive_partitioning = true, hive_types_autocast = false)
    group by all order by all`)
  expect(found.map(({ query, import_window }) => [query, import_window])).toEqual([
    ['domain.scatterholt.com', '2024-01-01'],
    ['domain.scatterholt.com', '2024-01-01T060000Z'],
  ])
  expect(found.map(({ n }) => n)).toEqual(
    [
      ['00:00', '06:00'],
      ['06:00', '12:00'],
    ].map(
      ([from, until]) =>
        [
          ...here.sandbox.expected({
            query: { type: 'domain', fqdn: 'scatterholt.com' },
            from: `2024-01-01T${from}:00Z`,
            until: `2024-01-01T${until}:00Z`,
          }),
        ].length,
    ),
  )
  const keys = (await here.json('status')).value as { partitions: { key: string }[] }
  expect(keys.partitions[0]!.key).toBe('keyword.a%20b%2Fc%3Dd/2024-01-01..2024-01-01T060000Z')
})

it.each(some(['columnar', 'parquetjs-lite'], 1))(
  '%s: created_by names version and encoder in the form that readers parse',
  async (engine) => {
    const here = await newWorkspace({ load: { engine } }, { records: 40 })
    await exits(0, here.run())
    const [path] = await shardPaths(here.output)
    const [found] = await sql(`select created_by from parquet_file_metadata('${join(here.output, path!)}')`)
    const createdBy = String(found!.created_by)
    expect(createdBy).toBe(`spillway version ${version} (build ${encoderDigest()})`)
    // The pattern of parquet-java. It ignores the statistics of files whose created_by does not match.
    const parts = /^(.*?)\s+version\s*(?:([^(]*?)\s*(?:\(\s*build\s*([^)]*?)\s*\))?)?$/.exec(createdBy)
    expect(parts?.slice(1)).toEqual(['spillway', version, expect.stringMatching(/^[0-9a-f]{16}$/)])
  },
)
