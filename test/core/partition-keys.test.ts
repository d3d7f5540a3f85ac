import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type IdentityPolicy,
  isFeed,
  nameQuery,
  parseInstant,
  parseWindow,
  partition,
  type Query,
  queryLabel,
  visibleLabel,
  type Window,
  windowRange,
} from '../../src/core/index.ts'
import { folderOf } from '../../src/load/index.ts'
import { cases } from '../support/thorough.ts'

const named = (query: Query) => nameQuery(query, queryLabel(query))

const at = (text: string): number => parseInstant(text) ?? Number.NaN

const text = fc.string({ unit: 'binary', minLength: 1 }).map((value) => value.toWellFormed())
const query: fc.Arbitrary<Query> = fc.oneof(
  text.map((fqdn): Query => ({ type: 'domain', fqdn })),
  text.map((fqdn): Query => ({ type: 'auth_domain', fqdn })),
  text.map((email): Query => ({ type: 'email', email })),
  text.map((keyword): Query => ({ type: 'keyword', keyword })),
  text.map((secretEnv): Query => ({ type: 'secret', secretEnv })),
  fc.nat().map((id): Query => ({ type: 'report', id })),
)
const instant = fc.oneof(
  fc.integer({ min: -10_000_000_000_000_000, max: Number.MAX_SAFE_INTEGER }),
  fc.integer({ min: -5000, max: 80_000 }).map((days) => days * 86_400_000_000),
  fc.integer({ min: 0, max: 500_000 }).map((hours) => hours * 3_600_000_000),
)

describe('names of partitions', () => {
  it.each<[Query, string]>([
    [{ type: 'domain', fqdn: 'acme.com' }, 'domain.acme.com'],
    [{ type: 'email', email: "o'neil+x@acme.com" }, 'email.o%27neil%2Bx@acme.com'],
    [{ type: 'keyword', keyword: 'é/ü ~!()*%' }, 'keyword.%C3%A9%2F%C3%BC%20%7E%21%28%29%2A%25'],
    [{ type: 'report', id: 12 }, 'report.12'],
    [{ type: 'reports' }, 'reports.all'],
  ])('name %j %s', (value, expected) => {
    expect(named(value).name).toBe(expected)
  })

  it('consist of letters, digits, . _ @ - and percent codes, and lose nothing', () => {
    fc.assert(
      fc.property(query, query, (one, other) => {
        const name = named(one).name
        expect(name).toMatch(/^[a-z_]+\.(?:[A-Za-z0-9._@-]|%[0-9A-F]{2})+$/)
        if (named(other).name === name) expect(other).toEqual(one)
      }),
    )
  })

  it('are the name that the user gives, whatever the query and whatever is hidden', () => {
    fc.assert(
      fc.property(
        query,
        text,
        fc.constantFrom<IdentityPolicy>('keep', 'hmac', 'drop'),
        (value, as, identity) => {
          if (value.type === 'report' || value.type === 'reports' || isFeed(value)) return
          expect(visibleLabel({ ...value, as }, identity)).toBe(as)
        },
      ),
    )
    expect(nameQuery({ type: 'email', email: 'a@b.example', as: 'Case 17/b' }, 'Case 17/b').name).toBe(
      'email.Case%2017%2Fb',
    )
  })

  it('are known without the mask key unless they would reveal a hidden identity', () => {
    fc.assert(
      fc.property(query, (value) => {
        expect(visibleLabel(value, 'keep')).toBe(queryLabel(value))
        const label = value.type === 'email' || value.type === 'keyword' ? null : queryLabel(value)
        // An unknown policy hides identities too.
        for (const policy of ['hmac', 'drop', 'none', undefined])
          expect(visibleLabel(value, policy as IdentityPolicy)).toBe(label)
      }),
    )
  })

  it.each<[Window | null, string]>([
    [null, 'all'],
    [{ from: at('2024-01-01'), until: at('2024-02-01') }, '2024-01-01'],
    [{ from: at('2024-01-01T06:00:00Z'), until: at('2024-01-01T12:00:00Z') }, '2024-01-01T060000Z'],
    [{ from: 1, until: 2 }, '1970-01-01T000000.000001Z'],
  ])('name the window %j %s', (window, expected) => {
    const folder = folderOf('credentials', partition(named({ type: 'domain', fqdn: 'acme.com' }), window), [
      'window',
    ])
    expect(folder).toBe(`credentials/import_window=${expected}`)
  })

  it('are parsed from the key, whatever the window', () => {
    fc.assert(
      fc.property(query, fc.option(fc.tuple(instant, instant)), (value, bounds) => {
        const window = bounds === null ? null : { from: Math.min(...bounds), until: Math.max(...bounds) }
        const { key } = partition(named(value), window)
        const slash = key.lastIndexOf('/')
        expect(key.slice(0, slash)).toBe(named(value).name)
        expect(parseWindow(key.slice(slash + 1))).toEqual(window)
        expect(key.indexOf('/')).toBe(slash)
        expect(key.slice(slash + 1)).toBe(windowRange(window))
      }),
      { numRuns: cases(1000, 100) },
    )
  })
})
