import { describe, expect, it } from 'vitest'
import { exitCodeOf } from '../../src/cli/terminal/exit-code.ts'
import { systemClock } from '../../src/core/index.ts'
import type { ColumnSpec } from '../../src/rows/index.ts'
import { DuckdbWarehouse, requireNames } from '../../src/warehouse/index.ts'
import { prepareTable } from '../../src/warehouse/table/prepare-table.ts'
import { qualified, type TableSpec } from '../../src/warehouse/table/table.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { pgRows } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { sql } from '../support/read-shards.ts'
import { THOROUGH } from '../support/thorough.ts'
import { columnOf, loadInto, loadValues, postgresAt, setInDatabase, tableWith } from './load-values.ts'

const TIME = columnOf('imported_at', 'timestamp')

const spec = (schema: string | null, name: string, ...more: readonly ColumnSpec[]): TableSpec =>
  tableWith([...more, columnOf('id', 'int64')], { schema, name })
const DUCKDB = { stop: new AbortController().signal, clock: systemClock, onWait: () => {} }

describe('PostgreSQL', () => {
  it('a table named with and without its schema is the same table, with one lock', async () => {
    const url = await newDatabase()
    const [first, second] = await Promise.all([0, 1].map(() => postgresAt(url, () => waited())))
    let waited = (): void => {}
    const waits = new Promise<void>((resolve) => {
      waited = resolve
    })
    const table = await first!.find(spec(null, 'credentials'))
    expect(table.schema).toBe('public')
    const order: string[] = []
    await first!
      .transaction(table, async () => {
        const held = second!.transaction(await second!.find(spec('public', 'credentials')), async () => {
          order.push('second')
        })
        await waits
        order.push('first')
        return { held }
      })
      .then(({ held }) => held)
    expect(order).toEqual(['first', 'second'])
    await first!.close()
    await second!.close()
  })

  it.runIf(THOROUGH)(
    'names with backslashes and quotes stay what they are where the database lets backslashes escape',
    async () => {
      const url = await newDatabase()
      await setInDatabase(url, 'standard_conforming_strings = off')
      const name = "a\\b'c\\"
      const table = spec(null, 'credentials')
      for (const rows of [1, 0]) expect(await loadInto(url, table, { [name]: ['1'] })).toMatchObject({ rows })
      expect(await pgRows(url, 'select spillway_shard as p from credentials')).toEqual([{ p: name }])
      expect(await loadInto(url, table, {})).toMatchObject({ removed: 1 })
      const left = 'select 1 from credentials union all select 1 from spillway_loads'
      expect(await pgRows(url, left)).toEqual([])
    },
  )

  it('concurrent loads into several tables of a new schema create it once, with one ledger', async () => {
    const url = await newDatabase()
    const make = async (name: string): Promise<void> => {
      const warehouse = await postgresAt(url)
      try {
        await prepareTable(warehouse, await warehouse.find(spec('leaks', name)), { evolve: false })
      } finally {
        await warehouse.close()
      }
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(make))
    expect(await pgRows(url, "select 1 from pg_tables where schemaname = 'leaks'")).toHaveLength(5)
  })

  it('the views of a table with the longest accepted name have different names', async () => {
    const url = await newDatabase()
    const longest = 'é'.repeat(23)
    requireNames('postgres', { schema: 's'.repeat(63), table: longest })
    const warehouse = await postgresAt(url)
    const columns = [columnOf('domain'), columnOf('source_id'), TIME]
    const table = await warehouse.find(spec('s'.repeat(63), longest, ...columns))
    await prepareTable(warehouse, table, { evolve: false })
    await warehouse.close()
    const [found] = await pgRows(url, `select count(*) as n from pg_views where viewname like '${longest}%'`)
    expect(Number(found?.n)).toBe(3)
  })
})

it('in DuckDB names differ not by case alone', async () => {
  const file = `${scratchFolder()}/leaks.db`
  const warehouse = await DuckdbWarehouse.open(file, DUCKDB)
  const table = await warehouse.find(spec(null, 'Credentials'))
  await prepareTable(warehouse, table, { evolve: false })
  const same = await warehouse.find(spec('MAIN', 'CREDENTIALS'))
  expect(qualified(same, same.name)).toBe('"leaks"."main"."Credentials"')
  await prepareTable(warehouse, same, { evolve: false })
  await warehouse.close()
})

it.each(['leaks', 'temp'])(
  'in DuckDB a schema may have the name of a catalog: %s; its views stay valid under another name of the file',
  async (schema) => {
    const file = `${scratchFolder()}/leaks.db`
    const warehouse = await DuckdbWarehouse.open(file, DUCKDB)
    // The same names in the schema that is looked into by default.
    for (const [of, rows] of [['main', 1] as const, [schema, 3] as const]) {
      const table = await warehouse.find(spec(of, 'credentials', TIME))
      for (let again = 0; again < 2; again++) await prepareTable(warehouse, table, { evolve: false })
      const values = Array.from({ length: rows }, (_, i) => `now(), ${i}`)
      await loadValues(warehouse, table, { a: values })
    }
    await warehouse.close()
    await sql(`ATTACH '${file}' AS renamed (READ_ONLY)`)
    try {
      for (const name of ['credentials', 'credentials_latest'])
        expect(await sql(`SELECT count(*)::INT AS n FROM renamed."${schema}".${name}`)).toEqual([{ n: 3 }])
    } finally {
      await sql('DETACH renamed')
    }
  },
)

it.each([
  ['postgres', { table: '' }, '--table', /name of the table is empty/],
  ['duckdb', { schema: '' }, '--schema', /name of the schema is empty/],
  ['duckdb', { table: 'Spillway_Loads' }, '--table', /says what is loaded/],
  ['postgres', { schema: 'x'.repeat(64) }, '--schema', /has 64 bytes, and PostgreSQL takes 63/],
  ['postgres', { table: 'é'.repeat(24) }, '--table', /has 48 bytes/],
  ['postgres', { table: 'x'.repeat(60) }, '--table', /has 60 bytes, and PostgreSQL takes 63: 47 are left/],
] as const)('%s: %o is refused, exit 2', (kind, names, where, says) => {
  try {
    requireNames(kind, { schema: null, table: null, ...names })
  } catch (error) {
    expect(error).toMatchObject({ where, what: expect.stringMatching(says) })
    expect(exitCodeOf(error, null)).toBe(2)
    return
  }
  throw new Error('it was taken')
})

it('DuckDB accepts names of any length', () => {
  requireNames('duckdb', { schema: 's'.repeat(200), table: 't'.repeat(200) })
})
