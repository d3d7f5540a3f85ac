import pg from 'pg'
import { expect, it, vi } from 'vitest'
import { PostgresWarehouse } from '../../src/warehouse/index.ts'
import { OWN_COLUMNS } from '../../src/warehouse/table/table.ts'
import { PASSWORD } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { loadValues } from './load-values.ts'

const text = (name: string) => ({ name, type: 'text' as const, nullable: true, meaning: name })
const TABLE = {
  schema: null,
  name: 'credentials',
  resource: 'credentials' as const,
  columns: [
    { ...text('id'), type: 'int64' as const },
    { ...text('imported_at'), type: 'timestamp' as const },
    ...['query_type', 'query_value'].map(text),
    ...OWN_COLUMNS,
  ],
}

// A pooler gives a connection to another client once a transaction has ended.
const SESSION = `SELECT
  (SELECT json_agg(json_build_array(name, setting) ORDER BY name) FROM pg_settings WHERE source = 'session') AS settings,
  (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
  (SELECT count(*)::int FROM pg_class WHERE relnamespace = pg_my_temp_schema()) AS temporary,
  (SELECT count(*)::int FROM pg_prepared_statements) AS prepared`

it('a load leaves no setting, lock, temporary table or prepared statement on its connection', async () => {
  process.env.PGPASSWORD = PASSWORD
  const url = await newDatabase()
  const connect = vi.spyOn(pg.Client.prototype, 'connect')
  const options = { stop: new AbortController().signal, onWait: () => {} }
  const warehouse = await PostgresWarehouse.connect(url, url, options)
  const client = connect.mock.contexts[0] as unknown as pg.Client
  connect.mockRestore()
  try {
    const before = (await client.query(SESSION)).rows
    const row = "1, now(), 'domain', 'x'"
    for (const mode of ['append', 'upsert', 'replace'] as const) {
      await loadValues(warehouse, TABLE, { [mode]: { rows: [row] } }, { mode, dataSet: mode })
      expect((await client.query(SESSION)).rows).toEqual(before)
    }
    expect(before).toMatchObject([{ locks: 0, temporary: 0, prepared: 0 }])
  } finally {
    await warehouse.close()
  }
})
