import { describe, expect, it } from 'vitest'
import { problems, read } from './pipeline-file.ts'

const FEED = `name: acme
service:
  base_url: https://api.example.com/firework
extract:
  resource: feed
`

describe('a feed', () => {
  it('is the tenant’s by default, in folders of a month', async () => {
    const { extract, service } = await read(FEED)
    expect(extract.queries).toEqual([{ type: 'tenant' }])
    expect(extract.windows?.every).toEqual({ unit: 'month' })
    expect(service.addresses.feed_path).toBe('/v2/me/feed/credentials')
    expect(service.addresses.identifier_feed_path).toBe('/v3/identifiers/{id}/feed/credentials')
  })

  it('may be that of identifiers, each once', async () => {
    const { extract } = await read(`${FEED}  identifiers: [123, 456, 123]\n  windows: { every: week }\n`)
    expect(extract.queries).toEqual([
      { type: 'identifier', id: 123 },
      { type: 'identifier', id: 456 },
    ])
    expect(extract.windows?.every).toEqual({ unit: 'week' })
  })

  it.each([
    ['windows: { from: 2024-01-01 }', '6:14: extract.windows.from'],
    ['domains: [acme.com]', '6:3: extract.domains'],
    ['domains_file: domains.txt', '6:3: extract.domains_file'],
    ['monthly_searches: 10', '6:3: extract.monthly_searches'],
    ['include: [known_password_id, urls]', '6:32: extract.include[1]'],
    ['order: desc', '6:10: extract.order'],
    ['identifiers: [0]', '6:17: extract.identifiers[0]'],
  ])('refuses %s by line and column', async (line, where) => {
    expect(await problems(`${FEED}  ${line}\n`)).toEqual([expect.stringContaining(`p.yaml:${where}: `)])
  })

  it('refuses search_path, and a path of identifiers without a place for the id', async () => {
    const file = FEED.replace('extract:', '  identifier_feed_path: /ids/feed\nextract:')
    expect(await problems(FEED.replace('extract:', '  search_path: /search\nextract:'))).toEqual([
      expect.stringMatching(/^p\.yaml:4:3: service\.search_path: does not go with resource: feed/),
    ])
    expect(await problems(file)).toEqual([
      expect.stringMatching(/^p\.yaml:4:25: service\.identifier_feed_path: .*\{id\}/),
    ])
  })

  it('refuses the flags of searches', async () => {
    expect(await problems(FEED, { overrides: { from: '2024-01-01' } })).toEqual([
      expect.stringMatching(/^--\S+: .*does not go with/),
    ])
  })

  it('has columns for its states, of which no other column may take the name', async () => {
    const { transform } = await read(FEED)
    expect(transform.columns.slice(-4)).toEqual(['remediated_at', 'ignored_at', 'query_type', 'query_value'])
    const extra = 'transform:\n  extra_columns: [{ name: state, path: ignored_at, type: string }]\n'
    expect(await problems(FEED + extra)).toEqual([expect.stringContaining('is the column `ignored_at`')])
  })
})
