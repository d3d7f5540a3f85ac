import { ExportError, LEFT_OUT, repeatsSecret, unlessSecret } from '../core/index.ts'
import { type DecodePage, MAX_CURSOR_BYTES } from '../rows/index.ts'
import { isKnownField, UNNAMED_FIELDS } from '../transform/index.ts'

/** Pages hold known secrets only in rows, which are the data itself. A cursor with one cannot be stored. */
export function pagesWithoutSecrets(decode: DecodePage): DecodePage {
  return async (body, context) => {
    const page = await decode(body, context)
    if (page.next !== null && isKept(page.next) && repeatsSecret(page.next, 'long'))
      throw new ExportError({
        kind: 'data',
        what: `The cursor that the service sent cannot be stored: ${LEFT_OUT}`,
        where: `${context.partition}, page ${context.page + 1}`,
        next: 'Choose windows so short that each fits on one page, and report it to the service.',
      })
    return {
      ...page,
      unknownFields: countedBy(page.unknownFields),
      quarantined: page.quarantined.map((item) => ({ ...item, item: cleared(item.item) })),
    }
  }
}

/** A longer one is rejected for its length and need not be searched. */
function isKept(cursor: string): boolean {
  return Buffer.byteLength(cursor) <= MAX_CURSOR_BYTES
}

function countedBy(counts: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const cleared = new Map<string, number>()
  for (const [name, times] of Object.entries(counts)) {
    const shown = shownName(name)
    cleared.set(shown, (cleared.get(shown) ?? 0) + times)
  }
  return Object.fromEntries(cleared)
}

function cleared(value: unknown): unknown {
  if (typeof value === 'string') return unlessSecret(value, 'long')
  if (Array.isArray(value)) return value.map(cleared)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      isKnownField(name) ? name : shownName(name),
      cleared(inner),
    ]),
  )
}

/** The name of a field that the service does not document. */
function shownName(name: string): string {
  return repeatsSecret(name) ? UNNAMED_FIELDS : name
}
