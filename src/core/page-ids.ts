/**
 * The ids that one page of a chain brought, so that the pages after it can tell what was there before. An id is two
 * numbers, its low and its high 32 bits: exact for every id, and cheap to compare and to keep.
 */
export type PageIds = {
  readonly rows: Int32Array<ArrayBuffer>
  /** Of items that went into quarantine: a good row of the same id is still news. */
  readonly refused: Int32Array<ArrayBuffer>
}

export const NO_IDS: PageIds = { rows: new Int32Array(0), refused: new Int32Array(0) }

// The service may repeat a row from one page to the next, and at some distance. What is older is forgotten, so that
// the memory of a chain does not depend on its length.
const PAGES = 2
const IDS = 20_000

/**
 * What is known of a chain after one more page: at least the last two pages that brought anything, and of small pages
 * as many as make 20,000 ids.
 */
export function withPage(recent: readonly PageIds[], page: PageIds): readonly PageIds[] {
  const words = ({ rows, refused }: PageIds): number => rows.length + refused.length
  if (words(page) === 0) return recent
  const known = [...recent, page]
  let count = known.reduce((sum, ids) => sum + words(ids) / 2, 0)
  while (known.length > PAGES && count - words(known[0]!) / 2 >= IDS) count -= words(known.shift()!) / 2
  return known
}
