import { expect, it, onTestFinished } from 'vitest'
import { startSandbox } from '../../src/sandbox/index.ts'
import { SMALL, workspaceFor } from '../e2e/support/workspace.ts'
import { exportHere, loadHere } from './in-process.ts'
import { newTarget } from './targets.ts'

const DOMAIN = { type: 'domain', fqdn: 'quillmere.net' }
const KEY = 'a key of more than sixteen bytes'
const parts = (queries: readonly object[], identity: string) => ({
  extract: { queries, windows: { from: '2024-01-01', until: '2024-09-01', every: 'year' } },
  transform: { identity, ...(identity === 'hmac' ? { mask_key_env: 'MASK_KEY' } : {}) },
  load: { partition_by: 'none' },
})

/** `SOMEONE` stands for the part before the @ of an address of the domain. */
const cases = [
  [{ type: 'domain', fqdn: 'scatterholt.com', as: 'ours' }, 'keep'],
  [{ type: 'auth_domain', fqdn: 'vpn.tunnelmere.io', as: 'log%in' }, 'keep'],
  [{ type: 'keyword', keyword: 'SOMEONE', as: 'case-17' }, 'keep'],
  [{ type: 'keyword', keyword: 'SOMEONE' }, 'keep'],
  [{ type: 'keyword', keyword: 'SOMEONE', as: 'case-17' }, 'hmac'],
  [{ type: 'keyword', keyword: 'SOMEONE', as: 'case-17' }, 'drop'],
] as const

it.each(cases)(
  'rows of %o in shared shards are loaded after it was taken out of the file, under identity: %s',
  async (given, identity) => {
    const sandbox = await startSandbox({ ...SMALL, records: 200 })
    onTestFinished(() => sandbox.close())
    const range = { from: '2024-01-01', until: '2024-09-01' }
    const address = [...sandbox.expected({ query: { type: 'domain', fqdn: DOMAIN.fqdn }, ...range })]
      .map(({ identity_name }) => identity_name)
      .find((name) => /^[a-z._]+@quillmere\.net$/.test(name))!
    const query = 'keyword' in given ? { ...given, keyword: address.split('@')[0]! } : given
    const here = await workspaceFor(sandbox, parts([query, DOMAIN], identity), { MASK_KEY: KEY })
    await exportHere(here)
    const target = await newTarget('duckdb', here)
    const readMaskKey = async () => (identity === 'hmac' ? new TextEncoder().encode(KEY) : null)
    const { rows } = await loadHere(here, target, 'append', { readMaskKey, table: 'before' })
    await here.write(parts([DOMAIN], identity))
    const after = await loadHere(here, target, 'append', { readMaskKey, table: 'after' })
    expect(after).toMatchObject({ rows })
    const partitions = (table: string) =>
      target.rows(
        `select spillway_partition as p, query_value as v, count(*)::int as n from ${table} group by all order by all`,
      )
    const found = await partitions('after')
    expect(found).toEqual(await partitions('before'))
    expect(
      found.some(({ p }) => String(p).startsWith(`${query.type}.`) && !String(p).includes('quillmere')),
    ).toBe(true)
  },
)
