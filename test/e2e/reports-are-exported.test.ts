import { describe, expect, it } from 'vitest'
import { expectSame, microsOf, type Row } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import type { Sandbox } from '../support/sandbox.ts'
import { summaryPageIn } from '../support/summary-page.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const STRINGS = ['format_type', 'title', 'subtitle', 'summary', 'content', 'prompt_preset_uid']
const LISTS = ['tags', 'highlights', 'related_activity_uids']
const TIMES = ['created_at', 'published_at', 'updated_at']
const INTEGERS = ['id', 'reading_time', 'tenant_id', 'organization_id']

/** Rows of reports, made from the service's own responses. */
async function expectedReports(sandbox: Sandbox, ids: readonly number[]): Promise<Row[]> {
  const rows: Row[] = []
  for (const id of ids) {
    const headers = { authorization: `Bearer ${sandbox.token}` }
    const response = await fetch(`${sandbox.baseUrl}/v4/threat_flow/reports/${id}`, { headers })
    const { report } = (await response.json()) as { report: Record<string, string | number | string[]> }
    const cells = [
      ...[...STRINGS, ...LISTS].map((name) => [name, report[name] as string | string[]]),
      ...TIMES.map((name) => [name, String(microsOf(String(report[name])))]),
      ...INTEGERS.map((name) => [name, String(report[name])]),
    ]
    rows.push(Object.fromEntries(cells))
  }
  return rows
}

describe.each(some(['parquet', 'csv'] as const, 1))('as %s', (format) => {
  it.each([
    { extract: { ids: [3, 25, 7, 3] }, ids: [3, 7, 25], requests: 3 },
    { extract: { all: true, page_size: 10 }, ids: Array.from({ length: 25 }, (_, i) => i + 1), requests: 3 },
  ])('$extract.ids$extract.all: a row for each report, once', async ({ extract, ids, requests }) => {
    const here = await newWorkspace({ extract: { resource: 'reports', ...extract }, load: { format } })
    const { summary } = await exits(0, here.run())
    expect(summary).toMatchObject({ rows: ids.length, requests, shards: 1 })
    const found = await here.rows()
    expectSame(found, await expectedReports(here.sandbox, ids))
    expect(await here.manifest()).toMatchObject({ resource: 'reports', totals: { rows: ids.length } })
    expect((await here.call('verify')).code).toBe(0)
    expect((await summaryPageIn(here.output)).figures.rows).toBe(String(ids.length))
    expect((await here.call('summary', '--json')).stdout).toContain('_report.html')
    expect((await here.run()).summary).toMatchObject({ rows: 0, requests: 0 })
  })
})

it('a report that does not exist fails alone', async () => {
  const here = await newWorkspace({ extract: { resource: 'reports', ids: [1, 99, 2] } })
  const { summary } = await exits(1, here.run(), 'report.99/all')
  expect(summary).toMatchObject({ rows: 2, partitions: { total: 3, done: 2, failed: 1 } })
  await here.expectExactly(await expectedReports(here.sandbox, [1, 2]))
})
