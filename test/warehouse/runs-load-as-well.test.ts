import { expect, it } from 'vitest'
import { exits, jsonLines } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { monthsUntil, newWorkspace } from '../support/workspace.ts'
import { newTarget } from './targets.ts'

it('run --load exports and loads, also the part that a spent budget allowed, and the rest on the next run', async () => {
  const here = await newWorkspace({
    extract: { domains: ['scatterholt.com'], windows: monthsUntil('2024-05-01'), page_size: 10 },
    // DuckDB takes such characters for patterns, and `?` for the end of a name.
    load: { path: 'out [1]?', format: 'csv', compression: 'gzip' },
  })
  const run = async (code: number, ...flags: string[]) => {
    const run = here.call('run', '--json', '--load', 'duckdb:leaks.db', ...flags)
    return jsonLines((await exits(code, run)).stdout)
  }
  const [part, first] = await run(4, '--max-requests', '2')
  expect(first.shards).toEqual({ loaded: part.shards, skipped: 0, replaced: 0 })
  const [rest, second] = await run(0)
  expect(second.shards).toEqual({ loaded: rest.shards, skipped: part.shards, replaced: 0 })
  expect(first.rows + second.rows).toBe(rest.rows + part.rows)
})

it.each([
  ['a database of another kind', 'mysql://somewhere', 2, 'duckdb:<file>'],
  ['a server that is not there', 'postgres://me@127.0.0.1:1/leaks', 1, '127.0.0.1:1'],
  ['a folder that is not there', 'duckdb:nowhere/leaks.db', 1, 'nowhere'],
])('%s is found before any request', async (_, target, code, said) => {
  const here = await newWorkspace({}, {}, { PGPASSWORD: 'secret' })
  await exits(code, here.call('run', '--load', target), said)
  expect(here.sandbox.requests).toHaveLength(0)
})

it.each(some(['duckdb', 'postgres'] as const, 1))(
  '%s: a table that lacks a column, or where data sets are not as it takes them, is found before any request',
  async (kind) => {
    const parts = (until: string, include: readonly string[] = []) => ({
      extract: { domains: ['scatterholt.com'], windows: monthsUntil(until), include },
    })
    const here = await newWorkspace(parts('2024-02-01'))
    const target = await newTarget(kind, here)
    Object.assign(here.env, target.env)
    const run = (...flags: string[]) => here.call('run', '--load', target.url, ...flags)
    const refused = async (says: string | RegExp, ...flags: string[]): Promise<void> => {
      const before = here.sandbox.requests.length
      await exits(2, run(...flags), says)
      expect(here.sandbox.requests).toHaveLength(before)
    }
    await exits(0, run())
    await here.write(parts('2024-03-01', ['known_password_id']))
    await refused(/known_password_id (?:text|varchar) is missing \(--evolve adds it\)/i)
    await refused('has no data set "an id"', '--evolve', '--supersede', 'an id')
    await exits(0, run('--evolve'))
    const { data_set_id: former } = await here.manifest()
    await exits(0, run('--fresh', '--yes', '--supersede', former))
    const { data_set_id: id, totals } = await here.manifest()
    const counted = 'select spillway_data_set as id, count(*)::int as n from credentials group by 1'
    expect(await target.rows(counted)).toEqual([{ id, n: totals.rows }])
    await target.change(
      `insert into spillway_loads select distinct data_set, 'superseded by x', '', 0, loaded_at, null::text[], table_name, pipeline from spillway_loads where data_set = '${id}'`,
    )
    await refused('The data set x has superseded this one', '--redo', '*')
  },
)
