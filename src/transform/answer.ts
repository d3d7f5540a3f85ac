import { isUtf8 } from 'node:buffer'
import type { Query } from '../core/index.ts'
import { ExportError } from '../core/index.ts'

/** An answer of the right shape, its items not yet looked at. */
export type Answer = { readonly items: readonly unknown[]; readonly next: string | null }

/** Ten times the most that can be asked for; each could become an entry in quarantine. */
export const MAX_ITEMS = 100_000

/**
 * Parses an answer: `{items, next}`, or `{report}` for a report asked for by its id. A byte order mark is ignored; a
 * missing `next` means the same as null.
 * Source: service spec 4.1 and 4.2.
 * @throws ExportError 'transient' when the bytes are no such answer: asked again, the service may do better
 */
export function parseAnswer(body: Buffer, query: Query, where: string): Answer {
  const answer = parseJson(body, where)
  if (typeof answer !== 'object' || answer === null) throw brokenAnswer('is no JSON object', where)
  if (query.type === 'report') {
    if (!('report' in answer) || !isObject(answer.report)) throw brokenAnswer('has no object `report`', where)
    return { items: [answer.report], next: null }
  }
  const items = 'items' in answer ? answer.items : undefined
  if (!Array.isArray(items)) throw brokenAnswer('has no array `items`', where)
  if (items.length > MAX_ITEMS) throw brokenAnswer('has more `items` than a page can have', where)
  const next = ('next' in answer ? answer.next : null) ?? null
  if (next !== null && typeof next !== 'string') {
    throw brokenAnswer('has a `next` that is neither a string nor null', where)
  }
  return { items, next }
}

function parseJson(body: Buffer, where: string): unknown {
  // What is read with replacement characters is not what was sent.
  if (!isUtf8(body)) throw brokenAnswer('is no UTF-8', where)
  try {
    const text = body.toString('utf8')
    return JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text)
  } catch {
    // The engine's own message quotes the text, so it is not kept as the cause.
    throw brokenAnswer('is no JSON', where)
  }
}

function brokenAnswer(what: string, where: string): ExportError {
  return new ExportError(
    'transient',
    `The answer ${what}`,
    where,
    'Run again; if it stays so, something between here and the service changes its answers.',
  )
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}
