import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Canary, findLeaks, type Haystack, haystacksOf } from '../fault/leak-search.ts'
import { planShape, statusShape } from '../support/json-shapes.ts'
import { expectedRows, expectSame, isValid, maskIdentity } from '../support/rows.ts'
import type { Ended } from '../support/run-cli.ts'
import { type Sandbox, type SearchQuery, startSandbox } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { SMALL, type Workspace, workspaceFor } from '../support/workspace.ts'

const KEY = 'a key of more than thirty-two bytes, ümläuts included'
const RANGE = { from: '2024-02-01', until: '2024-05-01' }

let sandbox: Sandbox
/** Two people with rows in the sandbox. */
let people: readonly [string, string]

beforeAll(async () => {
  sandbox = await startSandbox({ ...SMALL, records: 600, invalidRate: 0.2 })
  const rows = [...sandbox.expected({ query: { type: 'domain', fqdn: 'quillmere.net' }, ...RANGE })]
  const names = rows.filter(isValid).map(({ identity_name }) => identity_name)
  people = [...new Set(names.filter((name) => /^[a-z._]{8,}@quillmere\.net$/.test(name)))].slice(
    0,
    2,
  ) as never
})

const digest = (value: string): string => maskIdentity(value, 'hmac', KEY)
const keywordOf = (email: string): string => email.split('@')[0]!

/** Both people, each by address and by keyword, and one domain, which hides nothing. */
function queries(as: Readonly<Record<string, string>>): readonly (SearchQuery & { as?: string })[] {
  const [one, other] = people
  const all: SearchQuery[] = [
    { type: 'email', email: one },
    { type: 'keyword', keyword: keywordOf(one) },
    { type: 'email', email: other },
    { type: 'keyword', keyword: keywordOf(other) },
    { type: 'domain', fqdn: 'scatterholt.com' },
  ]
  return all.map((query, i) => (as[i] === undefined ? query : { ...query, as: as[i] }))
}

const ways = [
  { identity: 'hmac', format: 'csv', partition_by: ['query', 'window'], as: {} },
  { identity: 'hmac', format: 'parquet', partition_by: ['query'], as: { 2: 'case 17/b', 4: 'ours' } },
  {
    identity: 'drop',
    format: 'csv',
    partition_by: ['query', 'window'],
    as: { 0: 'a', 1: 'b', 2: 'c', 3: 'd' },
  },
  { identity: 'drop', format: 'parquet', partition_by: 'none', as: { 0: 'a', 1: 'a', 2: 'b', 3: 'b' } },
] as const

describe.each(some(ways, 1))(
  'identity: $identity, as $format, by $partition_by',
  ({ identity, format, partition_by, as }) => {
    const prepare = () =>
      workspaceFor(
        sandbox,
        {
          extract: {
            queries: queries(as),
            windows: { ...RANGE, every: 'month' },
            page_size: 40,
            max_requests: 4,
          },
          transform: { secret: 'hmac', identity },
          load: { format, partition_by, compression: 'none' },
        },
        { SPILLWAY_MASK_KEY: KEY },
      )

    it('neither address nor keyword is in any file, name or output; queries appear by their names; all rows are exported', async () => {
      const here = await prepare()
      const said: Ended[] = [
        await here.run('--log-level', 'debug'),
        await here.call('status'),
        await here.call('check'),
      ]
      expect(said.map(({ code }) => code)).toEqual([4, 0, 0])

      said.push(await here.run('--max-requests', '10000', '--log-level', 'debug', '--log-format', 'json'))
      said.push(await here.call('verify'), await here.call('summary'), await here.call('status', '--json'))
      expect(said.slice(3).map(({ code, stderr }) => [code, stderr])).toEqual([
        [0, expect.anything()],
        [0, expect.anything()],
        [0, ''],
        [0, ''],
      ])
      expect(await leaks(here, said)).toEqual([])

      const masking = { secret: 'hmac', identity, key: KEY } as const
      const wanted = queries(as).flatMap(({ as: _, ...query }) =>
        expectedRows(sandbox, { query: query as SearchQuery, ...RANGE, masking }),
      )
      const found = await here.rows()
      expectSame(found, wanted)
      expect(new Set(found.map(({ query_type, query_value }) => `${query_type} ${query_value}`))).toEqual(
        new Set(queries(as).map((query) => `${query.type} ${shownValue(query, identity)}`)),
      )

      const names = queries(as).map(nameOf)
      const { partitions } = statusShape.parse((await here.json('status')).value)
      expect([...new Set(partitions.map(({ query }) => query))]).toEqual(names)
      if (partition_by !== 'none') {
        const folders = await readdir(join(here.output, 'credentials'))
        expect(folders.sort()).toEqual(names.map((name) => `query=${name}`).sort())
      }
      for (const { partition } of await quarantined(here)) expect(names).toContain(partition.split('/')[0])
      // Nothing is left to do: later commands find the same names.
      expect(planShape.parse((await here.json('plan')).value)).toMatchObject({ min_requests: 0 })
    })
  },
)

function nameOf({ as, ...query }: SearchQuery & { as?: string }): string {
  if (as !== undefined) return `${query.type}.${encodeURIComponent(as)}`
  const value = searchedFor(query)
  return `${query.type}.${value.isHidden ? digest(value.text).slice(0, 16) : value.text}`
}

function shownValue(query: SearchQuery, identity: 'hmac' | 'drop'): string {
  const { isHidden, text } = searchedFor(query)
  if (!isHidden) return text
  return identity === 'drop' ? '[REDACTED]' : digest(text)
}

function searchedFor(query: SearchQuery): { readonly isHidden: boolean; readonly text: string } {
  switch (query.type) {
    case 'email':
      return { isHidden: true, text: query.email }
    case 'keyword':
      return { isHidden: true, text: query.keyword }
    case 'domain':
    case 'auth_domain':
      return { isHidden: false, text: query.fqdn }
    case 'secret':
      throw new Error('none here')
  }
}

/** The keyword is a part of the address, so a search for it finds both. */
function canaries(): readonly Canary[] {
  return people.flatMap((email) => [
    { name: 'address', value: email },
    { name: 'keyword', value: keywordOf(email) },
  ])
}

async function leaks(here: Workspace, said: readonly Ended[]): Promise<readonly string[]> {
  const output = said.map(
    ({ stdout, stderr }, i): Haystack => ({ name: `output ${i}`, bytes: Buffer.from(stdout + stderr) }),
  )
  return findLeaks([...(await haystacksOf(here.output)), ...output], canaries())
}

async function quarantined(here: Workspace): Promise<readonly { partition: string }[]> {
  const folder = join(here.output, '_quarantine')
  const names = await readdir(folder)
  expect(names.length).toBeGreaterThan(0)
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  return texts.flatMap((text) => text.split('\n').slice(0, -1)).map((line) => JSON.parse(line))
}
