import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { findLeaks, haystacksOf } from '../fault/leak-search.ts'
import { planShape, statusShape } from '../support/json-shapes.ts'
import { quarantineOf } from '../support/quarantine.ts'
import { expectedRows, expectSame, isValid, maskIdentity } from '../support/rows.ts'
import { type Ended, exits } from '../support/run-cli.ts'
import { type Sandbox, type SearchQuery, startSandbox } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { SMALL, workspaceFor } from '../support/workspace.ts'

const KEY = 'a key of more than thirty-two bytes, ümläuts included'
const RANGE = { from: '2024-02-01', until: '2024-05-01' }

let sandbox: Sandbox
let people: readonly [string, string]

beforeAll(async () => {
  sandbox = await startSandbox({ ...SMALL, records: 600, invalidRate: 0.2 })
  const rows = [...sandbox.expected({ query: { type: 'domain', fqdn: 'quillmere.net' }, ...RANGE })]
  const names = rows.filter(isValid).map(({ identity_name }) => identity_name)
  const [first = '', second = ''] = new Set(names.filter((name) => /^[a-z._]{8,}@quillmere\.net$/.test(name)))
  people = [first, second]
})

const digest = (value: string): string => maskIdentity(value, 'hmac', KEY)
const keywordOf = (email: string): string => email.split('@')[0]!

type Query = Exclude<SearchQuery, { type: 'auth_domain' | 'secret' }> & { readonly as?: string }

/** Both people, each by address and by keyword, and one domain, which hides nothing. */
function queries(as: Readonly<Record<string, string>>): readonly Query[] {
  const all = people.flatMap((email): Query[] => [
    { type: 'email', email },
    { type: 'keyword', keyword: keywordOf(email) },
  ])
  return [...all, { type: 'domain', fqdn: 'scatterholt.com' } as const].map((query, i) =>
    as[i] === undefined ? query : { ...query, as: as[i] },
  )
}

const ways = [
  { identity: 'hmac', format: 'csv', partition_by: ['query', 'window'], as: {} },
  { identity: 'hmac', format: 'parquet', partition_by: ['query'], as: { 2: 'case 17/b', 4: 'ours' } },
  { identity: 'drop', format: 'csv', partition_by: 'query', as: { 0: 'a', 1: 'b', 2: 'c', 3: 'd' } },
  { identity: 'drop', format: 'parquet', partition_by: 'none', as: { 0: 'a', 1: 'a', 2: 'b', 3: 'b' } },
] as const

it.each(some(ways, 1))(
  'neither address nor keyword is in any file, name or output; queries appear by their names; all rows are there: %j',
  async ({ identity, format, partition_by, as }) => {
    const windows = { ...RANGE, every: 'month' }
    const parts = {
      extract: { queries: queries(as), windows, page_size: 40, max_requests: 4 },
      transform: { secret: 'hmac', identity },
      load: { format, partition_by, compression: 'none' },
    }
    const here = await workspaceFor(sandbox, parts, { SPILLWAY_MASK_KEY: KEY })
    const debug = ['--log-level', 'debug'] as const
    const said: Ended[] = [
      await exits(4, here.run(...debug)),
      await exits(0, here.call('status')),
      await exits(0, here.call('check')),
      await exits(0, here.run('--max-requests', '10000', ...debug, '--log-format', 'json')),
      await exits(0, here.call('verify')),
      await exits(0, here.call('summary'), /^$/),
      await exits(0, here.call('status', '--json'), /^$/),
    ]
    const output = Buffer.from(said.map(({ stdout, stderr }) => stdout + stderr).join('\n'))
    // The keyword is a part of the address, so a search for it finds both.
    const canaries = people.map((email) => ({ name: 'keyword', value: keywordOf(email) }))
    const haystacks = [...(await haystacksOf(here.output)), { name: 'output', bytes: output }]
    expect(findLeaks(haystacks, canaries)).toEqual([])

    const masking = { secret: 'hmac', identity, key: KEY } as const
    const wanted = queries(as).flatMap(({ as: _, ...query }) =>
      expectedRows(sandbox, { query: query as SearchQuery, ...RANGE, masking }),
    )
    const found = await here.rows()
    expectSame(found, wanted)
    const shown = (query: Query): string =>
      query.type === 'domain' ? query.fqdn : identity === 'drop' ? '[REDACTED]' : digest(hidden(query))
    expect(new Set(found.map(({ query_type, query_value }) => `${query_type} ${query_value}`))).toEqual(
      new Set(queries(as).map((query) => `${query.type} ${shown(query)}`)),
    )

    const names = queries(as).map(nameOf)
    const { partitions } = statusShape.parse((await here.json('status')).value)
    expect([...new Set(partitions.map(({ query }) => query))]).toEqual(names)
    if (partition_by !== 'none') {
      const folders = await readdir(join(here.output, 'credentials'))
      expect(folders.sort()).toEqual(names.map((name) => `query=${name}`).sort())
    }
    const rejected = await quarantineOf(here.output)
    expect(rejected.length).toBeGreaterThan(0)
    for (const { partition } of rejected) expect(names).toContain(partition.split('/')[0])
    // Nothing is left to do: later commands find the same names.
    expect(planShape.parse((await here.json('plan')).value)).toMatchObject({ min_requests: 0 })
  },
)

const hidden = (query: Exclude<Query, { type: 'domain' }>): string =>
  query.type === 'email' ? query.email : query.keyword

function nameOf(query: Query): string {
  if (query.as !== undefined) return `${query.type}.${encodeURIComponent(query.as)}`
  return `${query.type}.${query.type === 'domain' ? query.fqdn : digest(hidden(query)).slice(0, 16)}`
}
