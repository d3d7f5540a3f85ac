import { expect, it } from 'vitest'
import { readParquet } from '../support/read-shards.ts'
import { expectedRows, expectSame } from '../support/rows.ts'
import { exits, jsonLines } from '../support/run-cli.ts'
import { some } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const query = { type: 'domain', fqdn: 'scatterholt.com' } as const

it.each(some(['parquet', 'csv'] as const, 1))(
  '%s: lists and URLs come from the second endpoint, named by an absolute search_path',
  async (format) => {
    const include = ['urls', 'known_password_id', 'auth_domains']
    const here = await newWorkspace({}, { publicFields: true })
    await here.write({
      service: { search_path: `${here.sandbox.origin}/astp/v2/credentials/_search` },
      extract: { domains: [query.fqdn], include, page_size: 60 },
      load: { format },
    })
    await exits(0, here.run())
    const found = await here.rows()
    expectSame(found, expectedRows(here.sandbox, { query, include }))
    expect(found.some(({ urls }) => Array.isArray(urls) && urls.length === 0)).toBe(true)
    expect(found.some(({ urls }) => Array.isArray(urls) && urls.length > 1)).toBe(true)
    expect((await here.manifest()).unknown_fields).toEqual({})
  },
)

it.each(some(['csv', 'parquet'] as const, 1))(
  '%s: only the requested columns are exported, in the usual order',
  async (format) => {
    const columns = ['query_value', 'source_leaked_at', 'known_password_id', 'id']
    const include = ['known_password_id']
    const here = await newWorkspace({
      extract: { domains: [query.fqdn], include },
      transform: { columns },
      load: { format },
    })
    await exits(0, here.run())
    const found = await here.rows()
    expectSame(found, expectedRows(here.sandbox, { query, include, columns }))
    expect(Object.keys(found[0]!)).toEqual(['id', 'known_password_id', 'source_leaked_at', 'query_value'])
    expect((await here.call('verify')).code).toBe(0)
  },
)

it('an optional field that is not requested is no column, and an unknown field is counted and reported once', async () => {
  const here = await newWorkspace(
    { extract: { domains: [query.fqdn], page_size: 20 } },
    { unknownFields: true, publicFields: true },
  )
  const { stderr } = await exits(0, here.run('--log-format', 'json'))
  const found = await readParquet(here.output)
  expectSame(found, expectedRows(here.sandbox, { query }))
  expect((await here.manifest()).unknown_fields).toEqual({ confidence: 150, x_ingest: 150 })
  const events = jsonLines(stderr)
  const told = expect.objectContaining({ level: 'warn', fields: 'confidence, x_ingest' })
  expect(events.filter(({ fields }) => fields !== undefined)).toEqual([told])
  // Those that are known are not said again.
  const again = await exits(0, here.run('--redo', '*', '--log-format', 'json'))
  expect(again.stderr).not.toContain('x_ingest')
})
