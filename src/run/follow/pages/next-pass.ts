import type { FeedProgress } from '../../../state/index.ts'

export type Pass = NonNullable<FeedProgress['pass']>

/** Which ends of a feed a run has read. */
export type ReadEnds = { front: boolean; end: boolean }

/** The pass of a feed that a run goes on with; null: it has read both ends. A pass that was cut is completed first. */
export function nextPass({ pass, end, owed }: FeedProgress, read: Readonly<ReadEnds>): Pass | null {
  if (pass !== null) return pass
  if (owed && !read.front) return 'front'
  if (!read.end) return end === null ? 'whole' : 'tail'
  return read.front ? null : 'front'
}
