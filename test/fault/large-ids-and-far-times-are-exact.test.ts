import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { quarantineOf } from '../support/quarantine.ts'
import { sql } from '../support/read-shards.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { startAttack } from './hostile-run.ts'
import { credential } from './hostile-service.ts'

/** Every row as strings, which DuckDB makes of the column types. */
async function rowsIn(output: string, format: 'parquet' | 'csv'): Promise<unknown[][]> {
  const files = `'${output}/credentials/**/part-*'`
  const time = (name: string) => `strftime(${name} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')`
  const types = TIMES.map((name) => `'${name}': 'TIMESTAMPTZ'`).join()
  const table =
    format === 'parquet'
      ? `read_parquet(${files})`
      : `read_csv(${files}, header = true, types = {'id': 'BIGINT', 'known_password_id': 'VARCHAR', ${types}})`
  const terms = ['id::varchar', 'known_password_id', ...TIMES.map(time)]
  return (await sql(`select ${terms} from ${table} order by identity_name`)).map((row) => Object.values(row))
}

const TIMES = ['imported_at', 'source_breached_at', 'source_leaked_at']

/** Id, as the service writes it, and two times. */
const ITEMS = [
  ['1', '0001-01-01T00:00:00.000000Z', '0001-01-01T00:00:00.000001Z'],
  ['9007199254740991', '0001-01-01T00:00:00.000001Z', '9999-12-31T00:00:00.000000Z'],
  ['9007199254740992', '1683-12-31T23:59:59.999999Z', '9999-12-31T23:59:59.999999Z'],
  ['9007199254740993', '2024-07-22T19:25:52.893439Z', '1683-12-31T23:59:59.999999Z'],
  ['-9007199254740993', '2255-06-05T23:47:34.740991Z', '2255-06-05T23:47:34.740993Z'],
  ['9223372036854775806', '2255-06-05T23:47:34.740993Z', '2024-07-22T19:25:52.893439Z'],
  ['9223372036854775807', '9999-12-31T23:59:59.999998Z', '0001-01-01T00:00:00.000000Z'],
  ['-9223372036854775808', '9999-12-31T23:59:59.999999Z', '2024-01-01T00:00:00.000000Z'],
] as const
const BEYOND = ['9223372036854775808', '-9223372036854775809', '100000000000000000000000000000000']

function item(index: number, id: string, imported_at: string, breached_at: string): string {
  const fields = credential(0, {
    identity_name: `person-${String(index).padStart(3, '0')}@acme.example`,
    imported_at,
    known_password_id: 0,
  })
  const source = { ...(fields.source as object), breached_at, leaked_at: imported_at }
  const json = JSON.stringify({ ...fields, source })
  // JSON.stringify would round the ids.
  return json.replace('"id":0', `"id":${id}`).replace('"known_password_id":0', `"known_password_id":${id}`)
}

const LOADS = [
  { format: 'parquet' },
  { format: 'parquet', engine: 'parquetjs-lite' },
  { format: 'csv' },
  { format: 'csv', engine: 'csv-stringify' },
] as const

test.each(some(LOADS, 2))('every 64-bit integer and every time from 0001 to 9999: %j', async (load) => {
  const pages = [ITEMS.slice(0, 2), ITEMS.slice(2, 3), ITEMS.slice(3)]
  const { call, run, output } = await startAttack(
    ({ body, json }) => {
      const page = Number(body.from ?? 0)
      const items = pages[page]!.map(([id, at, other], i) => item(page * 10 + i, id, at, other))
      const beyond = page < 2 ? [] : BEYOND.map((id) => item(99, id, ITEMS[3][1], ITEMS[3][1]))
      json(`{"items":[${[...items, ...beyond]}],"next":${page < 2 ? `"${page + 1}"` : 'null'}}`)
    },
    { load, extract: { include: ['known_password_id'] } },
  )
  const { summary } = await exits(0, run())
  expect(summary).toMatchObject({ rows: ITEMS.length, quarantined: BEYOND.length })
  const stored = (time: string) =>
    'engine' in load && load.engine === 'parquetjs-lite' ? `${time.slice(0, 23)}000Z` : time
  expect(await rowsIn(output, load.format)).toEqual(
    ITEMS.map(([id, at, other]) => [id, id, stored(at), stored(other), stored(at)]),
  )
  const { shards } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
  expect(shards).toMatchObject([{ imported_at: { min: ITEMS[0][1], max: ITEMS.at(-1)![1] } }])
  expect((await call('verify')).code).toBe(0)
  expect(await quarantineOf(output)).toMatchObject(
    BEYOND.map((id) => ({ id, item: { id, known_password_id: id }, issues: [{ path: 'id' }, {}] })),
  )
})

const ORDERS = [
  ['asc', '9999-12-31T23:59:59.999998Z', '9999-12-31T23:59:59.999999Z', 'gte', '9999-12-31T22:59:59.999999Z'],
  [
    'desc',
    '0001-01-01T00:00:00.000002Z',
    '0001-01-01T00:00:00.000001Z',
    'lte',
    '0001-01-01T01:00:00.000002Z',
  ],
] as const

test.each(some(ORDERS, 1))(
  'a chain starts again after large ids and far times, %s',
  async (order, first, last, bound, restart) => {
    const MAX = '9223372036854775807'
    const { call, output, service } = await startAttack(
      ({ body, json }) => {
        if (body.from !== undefined) json({ error: { code: 'UNKNOWN_CURSOR' } }, 400)
        else if (body.filters === undefined) {
          json(
            `{"items":[${item(0, '9007199254740993', first, first)},${item(1, MAX, last, first)}],"next":"x"}`,
          )
        } else {
          const again = [item(1, MAX, last, first), item(2, '9223372036854775806', last, first)]
          json(`{"items":[${again}],"next":null}`)
        }
      },
      { extract: { order, include: ['known_password_id'] } },
    )
    expect((await call('run', '--max-requests', '1')).code).toBe(4)
    await exits(0, call('run'))
    expect(service.requests.at(-1)?.body.filters).toEqual({ imported_at: { [bound]: restart } })
    const rows = await rowsIn(output, 'csv')
    expect(rows.map(([id]) => id)).toEqual(['9007199254740993', MAX, '9223372036854775806'])
    const { shards } = JSON.parse(await readFile(join(output, '_manifest.json'), 'utf8'))
    expect(shards).toMatchObject([{ imported_at: { [bound === 'gte' ? 'max' : 'min']: last } }])
  },
)
