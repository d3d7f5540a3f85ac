import {
  type DecodedPage,
  type DecodePage,
  ExportError,
  LEFT_OUT,
  MAX_CURSOR_BYTES,
  type PageContext,
  type RefusedItem,
  repeatsSecret,
  unlessSecret,
} from '../../core/index.ts'

/**
 * A decoder whose pages hold no known secret but in their rows, which are the data itself: not in names of fields that
 * nobody knows, nor in quarantine. A cursor that holds one can't be kept, and without it there is no way on.
 * @param release gets the page that is discarded because of its cursor
 */
export function withoutSecrets(decode: DecodePage, release: (page: DecodedPage) => void): DecodePage {
  return async (body, context) => {
    const page = await decode(body, context)
    if (page.next !== null && isKept(page.next) && repeatsSecret(page.next, 'long')) {
      release(page)
      throw secretInCursor(context)
    }
    return {
      ...page,
      unknownFields: namesWithoutSecrets(page.unknownFields),
      quarantined: page.quarantined.map(clearedItem),
    }
  }
}

/** A longer one is refused for its length, and need not be looked through. */
function isKept(cursor: string): boolean {
  return Buffer.byteLength(cursor) <= MAX_CURSOR_BYTES
}

function namesWithoutSecrets(counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const cleared = new Map<string, number>()
  for (const [name, times] of Object.entries(counts)) {
    const shown = unlessSecret(name)
    cleared.set(shown, (cleared.get(shown) ?? 0) + times)
  }
  return Object.fromEntries(cleared)
}

function clearedItem(quarantined: RefusedItem): RefusedItem {
  const { issues, item } = quarantined
  return { ...quarantined, issues: cleared(issues) as RefusedItem['issues'], item: cleared(item) }
}

/** The same value without the texts that repeat a secret, names of fields among them. */
function cleared(value: unknown): unknown {
  if (typeof value === 'string') return unlessSecret(value, 'long')
  if (Array.isArray(value)) return value.map(cleared)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [unlessSecret(name, 'long'), cleared(inner)]),
  )
}

function secretInCursor({ partition, page }: PageContext): ExportError {
  return new ExportError(
    'data',
    `The cursor that the service sent can not be kept: ${LEFT_OUT}`,
    `${partition}, page ${page + 1}`,
    'Choose windows so short that each fits on one page, and report it to the service.',
  )
}
