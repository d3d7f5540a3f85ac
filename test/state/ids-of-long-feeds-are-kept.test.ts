import { expect, test } from 'vitest'
import { afterFeedPage, NEW_FEED } from '../../src/state/checkpoint/folded-feed.ts'

test('of a long feed the first and the last 20,000 ids are kept, and what was forgotten is known', () => {
  let [feed, ids] = [NEW_FEED, [] as readonly number[]]
  for (let id = 0; id < 100; id++) {
    const each = { ids: id, cursor: `c${id}`, size: 1000, next: `c${id + 1}`, isOver: false }
    ;({ feed, ids } = afterFeedPage(feed, ids, each, () => 1000))
  }
  const [first, last] = [ids.slice(0, 20), ids.slice(20)]
  expect(first).toEqual(Array.from({ length: 20 }, (_, id) => id))
  expect(last).toEqual(Array.from({ length: 20 }, (_, i) => 80 + i))
  expect(feed).toMatchObject({ head: 20, truncated: true })
})
