import { expect, it } from 'vitest'
import { exits, jsonLines } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

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
