import { join } from 'node:path'
import { expect, it } from 'vitest'
import { encoderDigest, version } from '../../src/package/index.ts'
import { shardPaths, sql } from '../support/read-shards.ts'
import { exits, jsonLines } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const DOMAINS = ['scatterholt.com']
const INCLUDE = ['known_password_id', 'auth_domains', 'urls']

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
  '$engine: types, nullability and order of all columns, in the file and in the manifest; their rows; and who wrote it',
  async ({ engine, unit }) => {
    const here = await newWorkspace({}, { records: 40, publicFields: true })
    await here.write({
      // The second endpoint, by an absolute address.
      service: { search_path: `${here.sandbox.origin}/astp/v2/credentials/_search` },
      extract: { domains: DOMAINS, include: INCLUDE, page_size: 30 },
      load: { engine },
    })
    await exits(0, here.run())
    await here.expectRows(DOMAINS, { include: INCLUDE, milliseconds: unit === 'MILLIS' })
    const lists = (await here.rows()).map(({ urls }) => (urls as string[] | null)?.length)
    expect(lists).toEqual(expect.arrayContaining([0, 2]))
    expect((await here.manifest()).unknown_fields).toEqual({})
    const columns = promised(`TIMESTAMP(${unit}, UTC)`)
    const [path] = await shardPaths(here.output)
    const file = join(here.output, path!)
    expect(await columnsOf(file)).toEqual(columns)
    expect((await here.manifest()).columns).toEqual(
      columns.map(([name, type, nullable]) => ({ name, type, nullable })),
    )
    const [found] = await sql(`select created_by from parquet_file_metadata('${file}')`)
    expect(found!.created_by).toBe(`spillway version ${version} (build ${encoderDigest()})`)
    // The pattern of parquet-java. It ignores the statistics of files whose created_by does not match.
    const parts = /^(.*?)\s+version\s*(?:([^(]*?)\s*(?:\(\s*build\s*([^)]*?)\s*\))?)?$/.exec(
      `${found!.created_by}`,
    )
    expect(parts?.slice(1)).toEqual(['spillway', version, expect.stringMatching(/^[0-9a-f]{16}$/)])
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

it.each(some(['csv', 'parquet'] as const, 1))(
  '%s: only the requested columns are exported, in the usual order',
  async (format) => {
    const columns = ['query_value', 'source_leaked_at', 'known_password_id', 'id']
    const include = ['known_password_id']
    const here = await newWorkspace({
      extract: { domains: DOMAINS, include },
      transform: { columns },
      load: { format },
    })
    await exits(0, here.run())
    await here.expectRows(DOMAINS, { include, columns })
    expect(Object.keys((await here.rows())[0]!)).toEqual([
      'id',
      'known_password_id',
      'source_leaked_at',
      'query_value',
    ])
    expect((await here.call('verify')).code).toBe(0)
  },
)

it('an optional field that is not requested is no column, and an unknown field is counted and reported once', async () => {
  const here = await newWorkspace(
    { extract: { domains: DOMAINS, page_size: 20 } },
    { unknownFields: true, publicFields: true },
  )
  const { stderr } = await exits(0, here.run('--log-format', 'json'))
  await here.expectRows(DOMAINS)
  expect((await here.manifest()).unknown_fields).toEqual({ confidence: 150, x_ingest: 150 })
  const events = jsonLines(stderr)
  const told = expect.objectContaining({ level: 'warn', fields: 'confidence, x_ingest' })
  expect(events.filter(({ fields }) => fields !== undefined)).toEqual([told])
  // Those that are known are not said again.
  const again = await exits(0, here.run('--redo', '*', '--log-format', 'json'))
  expect(again.stderr).not.toContain('x_ingest')
})
