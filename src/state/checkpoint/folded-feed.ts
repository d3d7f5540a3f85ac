import { MAX_IDS, withLast } from '../../rows/index.ts'
import type { FeedProgress } from '../journal-entry.ts'

export const NEW_FEED: FeedProgress = {
  pass: 'whole',
  end: null,
  end_size: null,
  front: 0,
  head: 0,
  truncated: false,
  owed: false,
}

type FeedPage<Ids> = {
  /** Of its new rows; null: it has none. */
  readonly ids: Ids | null
  /** The cursor that it was requested with, and the size of its sequence. */
  readonly cursor: string | null
  readonly size: number | null
  readonly next: string | null
  /** Whether the pass is complete with it. */
  readonly isOver: boolean
}

/** The pass of the next page: without one that has begun, a feed goes on from its last cursor. */
export function passOf({ pass, end }: Pick<FeedProgress, 'pass' | 'end'>): NonNullable<FeedProgress['pass']> {
  return pass ?? (end === null ? 'whole' : 'tail')
}

/** The feed after a page, and the ids that are kept, each at least 20,000: of its front, and of its last rows. */
export function afterFeedPage<Ids>(
  feed: FeedProgress,
  ids: readonly Ids[],
  page: FeedPage<Ids>,
  countOf: (ids: Ids) => number,
): { readonly feed: FeedProgress; readonly ids: readonly Ids[] } {
  const pass = passOf(feed)
  const front = ids.slice(0, feed.front)
  const head = ids.slice(feed.front, feed.front + feed.head)
  let rest = ids.slice(feed.front + feed.head)
  let { truncated } = feed
  if (page.ids !== null) {
    if (pass !== 'tail' && head.reduce((sum, each) => sum + countOf(each), 0) < MAX_IDS) head.push(page.ids)
    else {
      const kept = withLast(rest, page.ids, countOf)
      truncated ||= kept.length <= rest.length
      rest = [...kept]
    }
  }
  const after = { ...feed, pass, truncated }
  if (!page.isOver) return { feed: { ...after, head: head.length }, ids: [...front, ...head, ...rest] }
  const isTail = pass === 'tail'
  const found = isTail ? front : firstOf([...head, ...front], countOf)
  // A pass from the front that met what is there has not seen the end.
  const isAtEnd = page.next === null
  return {
    feed: {
      ...after,
      pass: null,
      end: isAtEnd ? page.cursor : feed.end,
      end_size: isAtEnd ? page.size : feed.end_size,
      front: found.length,
      head: 0,
      owed: isTail,
    },
    ids: [...found, ...rest],
  }
}

function firstOf<Ids>(pages: readonly Ids[], countOf: (ids: Ids) => number): readonly Ids[] {
  const kept: Ids[] = []
  for (let count = 0; kept.length < pages.length && count < MAX_IDS; count += countOf(kept.at(-1)!))
    kept.push(pages[kept.length]!)
  return kept
}
