import { dirname } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { expectedRows, expectSame } from '../support/rows.ts'
import { exits } from '../support/run-cli.ts'
import { COMMON_PASSWORDS, type Sandbox, type SearchQuery, startSandbox } from '../support/sandbox.ts'
import { THOROUGH } from '../support/thorough.ts'
import { SMALL, workspaceFor } from '../support/workspace.ts'

const RANGE = { from: '2024-02-01', until: '2024-05-01' }
const WINDOWS = { ...RANGE, every: 'month' }
const LEAKED = COMMON_PASSWORDS[0]!

let sandbox: Sandbox
let queries: readonly SearchQuery[]

beforeAll(async () => {
  sandbox = await startSandbox({ ...SMALL, records: 600 })
  const names = [...sandbox.expected({ query: { type: 'domain', fqdn: 'quillmere.net' }, ...RANGE })].map(
    ({ identity_name }) => identity_name,
  )
  const someone = names.find((name) => /^[a-z._]+@quillmere\.net$/.test(name))!
  queries = [
    { type: 'domain', fqdn: 'scatterholt.com' },
    { type: 'auth_domain', fqdn: 'vpn.tunnelmere.io' },
    { type: 'email', email: someone },
    { type: 'keyword', keyword: someone.split('@')[0]! },
    { type: 'secret', secret: LEAKED },
  ]
})

const orders = ['asc', 'desc'] as const
const partitionings = [['query', 'window'], ['query'], ['window'], []] as const
const formats = ['parquet', 'csv'] as const
const everyWay = partitionings.flatMap((partitionBy, i) =>
  formats.map((format, j) => ({ format, partitionBy, order: orders[(i + j) % 2]! })),
)

// By default each format and each order once.
it.each(THOROUGH ? everyWay : [everyWay[0]!, everyWay[7]!])(
  'exactly the rows of all five kinds of query are there, as $format, $order, in folders by $partitionBy',
  async ({ format, partitionBy, order }) => {
    const asked = queries.map((query) =>
      query.type === 'secret' ? { type: 'secret', secret_env: 'LEAKED_PASSWORD' } : query,
    )
    const extract = { queries: asked, windows: WINDOWS, order, page_size: 40 }
    const load = { format, partition_by: partitionBy.length === 0 ? 'none' : partitionBy }
    const here = await workspaceFor(sandbox, { extract, load }, { LEAKED_PASSWORD: LEAKED })
    const { stderr, stdout, summary } = await exits(0, here.run())

    const wanted = queries.map((query) => expectedRows(sandbox, { query, ...RANGE }))
    for (const rows of wanted) expect(rows).not.toHaveLength(0)
    const found = await here.rows()
    expectSame(found, wanted.flat())
    expect(summary.rows).toBe(found.length)

    const folders = (await here.manifest()).shards.map(({ path }) => dirname(path))
    for (const folder of folders) expect(folder).toMatch(FOLDERS[partitionBy.join()]!)
    expect(`${stdout}${stderr}${folders}`).not.toContain(LEAKED)
  },
)

const QUERY = 'query=(?:domain|auth_domain|email|keyword|secret)\\.[A-Za-z0-9._@-]+'
const WINDOW = 'import_window=2024-0[2-8]-01'
const FOLDERS: Readonly<Record<string, RegExp>> = {
  'query,window': new RegExp(`^credentials/${QUERY}/${WINDOW}$`),
  query: new RegExp(`^credentials/${QUERY}$`),
  window: new RegExp(`^credentials/${WINDOW}$`),
  '': /^credentials$/,
}
