import { expect, test } from 'vitest'
import { type FeedIds, ownFields } from '../../src/rows/index.ts'
import { agreedPage } from './agreement.ts'
import { credential } from './credentials.ts'
import { readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext, rowsOf } from './plans.ts'

const PLAN = { resource: 'feed', extras: ownFields('feed', []) } as const
const context = (feed: FeedIds) => pageContext({ query: { type: 'tenant' }, feed })

/** Feeds have no hash_type, and sources without is_alert_enabled. */
function item(id: number, changes: object): object {
  const { hash_type: _, ...rest } = credential({ id, imported_at: '2024-01-02T03:04:05.678901+00:00' })
  const { is_alert_enabled: __, ...source } = rest.source as Record<string, unknown>
  return { ...rest, source, ...changes }
}

const body = (items: readonly object[]) => Buffer.from(JSON.stringify({ items, next: null }))

test('the states of a feed are columns', () => {
  const items = [
    item(1, { remediated_at: '2024-02-03T00:00:00+00:00', ignored_at: null }),
    item(2, {}),
    item(3, { ignored_at: 'yesterday' }),
  ]
  const page = agreedPage(items, PLAN, context({ earlier: [], front: 0 }))
  expect(
    rowsOf(page).map(({ remediated_at, ignored_at, hash_type }) => [remediated_at, ignored_at, hash_type]),
  ).toEqual([
    [1_706_918_400_000_000, null, null],
    [null, null, null],
  ])
  expect(page.quarantined.map(({ issues }) => issues[0]?.path)).toEqual(['ignored_at'])
})

test('a page meets the front of a feed only by an id of the front', () => {
  const paths = readersOf(decodeSettings(PLAN))
  const ids = (...of: number[]) => ({
    rows: Int32Array.from(of.flatMap((id) => [id, 0])),
    rejected: new Int32Array(0),
  })
  const feed = { earlier: [ids(7, 8), ids(1)], front: 1 }
  for (const decode of [paths.read, paths.plain]) {
    expect(decode(body([item(1, {}), item(2, {})]), context(feed))).toMatchObject({
      rows: 1,
      repeated: 1,
      met: false,
    })
    expect(decode(body([item(9, {}), item(8, {})]), context(feed))).toMatchObject({
      rows: 1,
      repeated: 1,
      met: true,
    })
  }
})
