import { expect, it } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { expectedOfDomains } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import type { PipelineParts, Workspace } from '../support/workspace.ts'

const RANGE = { from: '2024-01-01', until: '2024-03-01' }

function exported(load: PipelineParts['load'] = {}): Promise<Workspace> {
  const extract = { domains: ['scatterholt.com'], windows: { ...RANGE, every: 'month' } }
  return exportedWorkspace({ extract, load })
}

it.each(some(['parquet', 'csv'], 1))('the data set is a view, and rows are shown: %s', async (format) => {
  const here = await exported({ format })
  const rows = expectedOfDomains(here.sandbox, ['scatterholt.com'], RANGE)
  const asked = 'SELECT count(*) AS n, min(id) AS least, count(hash) AS hashes FROM credentials'
  const least = Math.min(...rows.map(({ id }) => Number(id)))
  const hashes = rows.filter(({ hash }) => hash !== null).length
  expect((await here.json('query', asked)).value).toEqual([{ n: rows.length, least, hashes }])
  const table = await here.call('query', 'SELECT query_type, count(*) AS n FROM credentials GROUP BY 1')
  const width = String(rows.length).length
  expect(table.stdout).toBe(`query_type  ${'n'.padStart(width)}\ndomain      ${rows.length}\n1 row\n`)
})

it('without SQL query shows the columns and the first rows', async () => {
  const here = await exported()
  const { stdout } = await exits(0, here.call('query'))
  expect(stdout).toMatch(/^ *id +domain +identity_name /m)
  expect(stdout).toMatch(/ 2024-0\d-/)
})

it('columns of one name stay apart, and times are in UTC wherever the query runs', async () => {
  const here = await exported()
  Object.assign(here.env, { TZ: 'America/New_York' })
  const at = "TIMESTAMPTZ '2024-07-22 19:25:52.5+02'"
  const { value } = await here.json('query', `SELECT 1 AS a, 2 AS a, ${at} AS t, [${at}] AS ts`)
  const time = '2024-07-22 17:25:52.5+00'
  expect(value).toEqual([{ a: 1, 'a:1': 2, t: time, ts: [time] }])
})
