import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { prepareTable } from '../../src/warehouse/table/prepare-table.ts'
import type { TableSpec } from '../../src/warehouse/table/table.ts'
import { pgClient, pgRows } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { THOROUGH } from '../support/thorough.ts'
import { columnOf, loadInto, loadValues, postgresAt, setInDatabase, tableWith } from './load-values.ts'

const COLUMNS = [
  columnOf('id', 'int64'),
  columnOf('imported_at', 'timestamp'),
  ...['identity_name', 'domain', 'source_id'].map((name) => columnOf(name)),
]
const row = (identity: string) => `1, now(), '${identity}', 'a.example', 's'`

/** Loads one shard with one row, or what else is given. */
const load = (
  url: string,
  shards: Parameters<typeof loadValues>[2] = { a: [row('ada')] },
  columns: TableSpec['columns'] = COLUMNS,
) => loadInto(url, tableWith(columns), shards)

/** Another session that has read from a relation and is idle in its transaction. */
async function readerOf(url: string, relation: string): Promise<void> {
  const client = await pgClient(url)
  onTestFinished(() => client.end())
  await client.query(`set application_name = 'dashboard'; begin; select * from ${relation}`)
}

describe('a load into PostgreSQL', () => {
  it('that finds everything in place changes no definition, and waits for no reader', async () => {
    const url = await newDatabase()
    await load(url)
    await pgRows(
      url,
      `alter view credentials_latest set (security_barrier = true); comment on view credentials_latest is 'ours';
       create table definitions (tag text);
       create function note() returns event_trigger language plpgsql as $$ begin insert into definitions values (tg_tag); end $$;
       create event trigger watch on ddl_command_end execute function note()`,
    )
    for (const name of ['credentials', 'credentials_latest', 'credentials_by_source', 'spillway_loads'])
      await readerOf(url, name)
    await load(url, { a: [row('ada')], b: [row('bob')] })
    await load(url, { b: [row('bob')] })
    expect(await pgRows(url, 'select * from definitions')).toEqual([])
    expect(await pgRows(url, 'select identity_name from credentials')).toEqual([{ identity_name: 'bob' }])
  })

  it('that has to replace a view carries its options and its comment over', async () => {
    const url = await newDatabase()
    await load(url)
    await pgRows(
      url,
      `alter view credentials_latest set (security_barrier = true); comment on view credentials_latest is 'ours';
       alter view credentials_by_source set (security_barrier = true); comment on view credentials_by_source is 'ours';
       alter view credentials_by_source rename column credentials to number`,
    )
    const wider = [...COLUMNS, columnOf('more')]
    const warehouse = await postgresAt(url)
    await prepareTable(warehouse, await warehouse.find(tableWith(wider)), { evolve: true })
    await warehouse.close()
    await load(url, { b: [`${row('bob')}, 'x'`] }, wider)
    const found = `select reloptions as options, obj_description(oid) as remark from pg_class
      where relname in ('credentials_latest', 'credentials_by_source')`
    const kept = { options: ['security_barrier=true'], remark: 'ours' }
    expect(await pgRows(url, found)).toEqual([kept, kept])
    expect(await pgRows(url, 'select more from credentials_latest')).toEqual([{ more: 'x' }])
    expect(await pgRows(url, 'select credentials from credentials_by_source')).toEqual([{ credentials: '1' }])
  })

  it('that has to replace a view in use ends with exit 5, and names who has it', async () => {
    const url = await newDatabase()
    await load(url)
    await pgRows(url, 'alter view credentials_by_source rename column credentials to number')
    await readerOf(url, 'credentials_by_source')
    await expect(load(`${url}?options=-c%20lock_timeout%3D200ms`)).rejects.toMatchObject({
      kind: 'locked',
      what: expect.stringMatching(
        /^The load has to change a definition, and process \d+ of postgres \(dashboard, idle in transaction\) has the table or a view in use$/,
      ),
    })
  })

  it.runIf(THOROUGH)('takes identities of any length', async () => {
    const url = await newDatabase()
    const long = randomBytes(6000).toString('hex')
    await load(url, { a: [row(long)] })
    await load(url, { a: [row(long)], b: [row(`${long}x`)] })
    const found = `select 1 from credentials where identity_name like '${long.slice(0, 9)}%'`
    expect(await pgRows(url, found)).toHaveLength(2)
    const indexes = await pgRows(url, "select 1 from pg_indexes where tablename = 'credentials'")
    expect(indexes).toHaveLength(4)
  })

  it('deletes rows of a table that is published for logical replication', async () => {
    const url = await newDatabase()
    await pgRows(url, 'create publication everything for all tables')
    await load(url)
    expect(await load(url, {})).toMatchObject({ removed: 1 })
  })

  it.runIf(THOROUGH)(
    'compares types, not how the server spells them, and takes columns of others that need no value',
    async () => {
      const url = await newDatabase()
      await setInDatabase(url, 'quote_all_identifiers = on')
      await load(url)
      await pgRows(
        url,
        'alter table credentials add column number bigint generated always as identity, add column seen timestamptz not null default now()',
      )
      await load(url, { a: [row('ada')], b: [row('bob')] })
      await pgRows(url, 'alter table credentials add column note text; update credentials set note = 0')
      await pgRows(url, 'alter table credentials alter column note set not null')
      await expect(load(url)).rejects.toThrow(/note may not be null, and the rows have no such column/)
    },
  )

  it.each([
    [
      'alter table credentials add constraint ours check (id < 1) not valid',
      /constraint of the table \(23514, ours\)/,
    ],
    [
      "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$",
      /PostgreSQL refuses \(25006\)/,
    ],
    ['alter table credentials replica identity default; create publication p for all tables', /\(55000\)/],
  ])('names the condition after %s', async (change, told) => {
    const url = await newDatabase()
    await load(url)
    await pgRows(url, change)
    await expect(load(url, { b: [row('bob')] })).rejects.toMatchObject({
      kind: 'target',
      what: expect.stringMatching(told),
    })
  })

  const withTrigger = (url: string, before: 'insert' | 'delete', table = 'credentials') =>
    pgRows(
      url,
      `create function ours() returns trigger language plpgsql as $$ begin if to_jsonb(old)->>'id' = '2' or to_jsonb(new)->>'id' = '2' or tg_relname = 'spillway_loads' then return null; end if; return coalesce(new, old); end $$;
       create trigger ours before ${before} on ${table} for each row execute function ours()`,
    )
  const WITH_QUERY = tableWith([...COLUMNS.slice(0, 2), columnOf('query_type'), columnOf('query_value')])
  const some = (...ids: readonly number[]) => ids.map((id) => `${id}, now(), 'domain', 'x'`)

  const LOST = [
    ['append', 'a trigger that drops rows', 'credentials', '2 rows of 3 for public.credentials'],
    ['append', 'a trigger that drops entries', 'spillway_loads', '0 rows of 1 for spillway_loads'],
    ['upsert', 'a trigger that drops rows', 'credentials', '2 rows of 3 for public.credentials'],
    ['upsert', 'a rule that redirects rows', null, '0 rows of 3 for public.credentials'],
  ] as const
  it.each(LOST)('%s: %s ends it, and nothing is loaded', async (mode, _what, table, says) => {
    const url = await newDatabase()
    const put = (shards: Parameters<typeof loadValues>[2]) => loadInto(url, WITH_QUERY, shards, { mode })
    await put({})
    if (table !== null) await withTrigger(url, 'insert', table)
    else
      await pgRows(
        url,
        `create table archive (like credentials);
         create rule ours as on insert to credentials do instead insert into archive values (new.*)`,
      )
    await expect(put({ a: some(1, 2, 3) })).rejects.toMatchObject({
      kind: 'target',
      what: expect.stringContaining(`acknowledged ${says}`),
      where: 'a',
    })
    const stored = 'select shard from spillway_loads union select spillway_shard from credentials'
    expect(await pgRows(url, stored)).toEqual([])
    await pgRows(url, table === null ? 'drop rule ours on credentials' : `drop trigger ours on ${table}`)
    expect(await put({ a: some(1, 2, 3) })).toMatchObject({ rows: 3 })
  })

  it.each(['append', 'upsert'] as const)(
    '%s: a trigger that keeps rows that are to go ends it',
    async (mode) => {
      const url = await newDatabase()
      const put = (shards: Parameters<typeof loadValues>[2]) => loadInto(url, WITH_QUERY, shards, { mode })
      await put({ a: some(1, 2), b: some(3) })
      await withTrigger(url, 'delete')
      // In one case a shard goes, in the other a later row takes the place of an earlier one.
      await expect(
        put(mode === 'append' ? { b: some(3) } : { a: some(1, 2), b: some(3), c: some(2) }),
      ).rejects.toMatchObject({
        kind: 'target',
        what: expect.stringContaining('keeps rows that were to be deleted'),
        where: 'public.credentials',
      })
      expect(await pgRows(url, 'select sum(rows)::int as n from spillway_loads')).toEqual([{ n: 3 }])
      expect(await pgRows(url, 'select count(*)::int as n from credentials')).toEqual([{ n: 3 }])
    },
  )

  it('a row that no partition takes is told as that', async () => {
    const url = await newDatabase()
    await load(url)
    await pgRows(
      url,
      `alter table credentials rename to former; delete from spillway_loads;
       create table credentials (like former) partition by range (imported_at);
       create table early partition of credentials for values from (minvalue) to ('2001-01-01')`,
    )
    await expect(load(url)).rejects.toMatchObject({
      kind: 'target',
      what: 'A row belongs to no partition of the table (23514)',
      next: expect.stringContaining('PARTITION OF … DEFAULT'),
    })
    await pgRows(url, 'create table others partition of credentials default')
    expect(await load(url)).toMatchObject({ rows: 1 })
    // A trigger may raise the same code, and means something else.
    await pgRows(
      url,
      `create function ours() returns trigger language plpgsql as $$ begin raise check_violation; end $$;
       create trigger ours before insert on credentials for each row execute function ours()`,
    )
    await expect(load(url, { b: [row('bob')] })).rejects.toMatchObject({
      what: 'The rows break a constraint of the table (23514)',
    })
  })

  it('leaves no setting, lock, temporary table or prepared statement on its connection', async () => {
    const url = await newDatabase()
    const connect = vi.spyOn(pg.Client.prototype, 'connect')
    const warehouse = await postgresAt(url)
    const client = connect.mock.contexts[0] as unknown as pg.Client
    connect.mockRestore()
    try {
      const before = (await client.query(SESSION)).rows
      for (const mode of ['append', 'upsert', 'replace'] as const) {
        await loadValues(warehouse, WITH_QUERY, { [mode]: some(1) }, { mode, dataSet: mode })
        expect((await client.query(SESSION)).rows).toEqual(before)
      }
      expect(before).toMatchObject([{ locks: 0, temporary: 0, prepared: 0 }])
    } finally {
      await warehouse.close()
    }
  })
})

// A pooler gives a connection to another client once a transaction has ended.
const SESSION = `SELECT
  (SELECT json_agg(json_build_array(name, setting) ORDER BY name) FROM pg_settings WHERE source = 'session') AS settings,
  (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
  (SELECT count(*)::int FROM pg_class WHERE relnamespace = pg_my_temp_schema()) AS temporary,
  (SELECT count(*)::int FROM pg_prepared_statements) AS prepared`
