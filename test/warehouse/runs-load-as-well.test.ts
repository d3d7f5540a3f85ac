import { expect, it } from 'vitest'
import { exits, jsonLines } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'
import { newTarget } from './targets.ts'

it('run --load exports and loads, also the part that a spent budget allowed, and the rest on the next run', async () => {
  const here = await newWorkspace({
    extract: {
      domains: ['scatterholt.com'],
      windows: { from: '2024-01-01', until: '2024-05-01', every: 'month' },
      page_size: 10,
    },
    // DuckDB takes such characters for patterns, and `?` for the end of a name.
    load: { path: 'out [1]?', format: 'csv', compression: 'gzip' },
  })
  const run = async (...flags: string[]) => {
    const { code, stdout, stderr } = await here.call('run', '--json', '--load', 'duckdb:leaks.db', ...flags)
    const [summary, load] = jsonLines(stdout)
    return { code, stderr, summary, load }
  }
  const first = await run('--max-requests', '2')
  expect(first.code, first.stderr).toBe(4)
  expect(first.load.shards).toEqual({ loaded: first.summary.shards, skipped: 0, replaced: 0 })
  const second = await run()
  expect(second.code, second.stderr).toBe(0)
  expect(second.load.shards).toEqual({
    loaded: second.summary.shards,
    skipped: first.summary.shards,
    replaced: 0,
  })
  expect(first.load.rows + second.load.rows).toBe(second.summary.rows + first.summary.rows)
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
  '%s: a table that lacks a column, or where another data set has superseded this one, is found before any request',
  async (kind) => {
    const here = await newWorkspace({
      extract: {
        domains: ['scatterholt.com'],
        windows: { from: '2024-01-01', until: '2024-02-01', every: 'month' },
      },
    })
    const target = await newTarget(kind, here)
    Object.assign(here.env, target.env)
    const run = (...flags: string[]) => here.call('run', '--load', target.url, ...flags)
    const sent = () => here.sandbox.requests.length
    await exits(0, run())
    const before = sent()
    await target.change('drop view credentials_latest')
    await target.change('alter table credentials rename column hash to digest')
    await exits(2, run('--redo', '*'), 'hash')
    expect(sent()).toBe(before)
    await exits(0, here.call('load', '--to', target.url, '--evolve'))
    await target.change("update spillway_loads set shard = 'superseded by x', rows = 0")
    await target.change('delete from credentials')
    await exits(2, run('--redo', '*'), 'The data set x has superseded this one')
    expect(sent()).toBe(before)
    // Another data set begins.
    await exits(0, run('--fresh', '--yes'))
  },
)
