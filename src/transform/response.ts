import { isUtf8 } from 'node:buffer'
import { ExportError, hasTooManyValues, type Query } from '../core/index.ts'
import type { DecodedPage, PageContext } from '../rows/index.ts'
import { parseExactJson } from './scan/exact-json.ts'
import { COMMA, skipSpace, skipString, skipValue } from './scan/json-steps.ts'

export type Decode = (body: Buffer, context: PageContext) => DecodedPage

/** A response of the right shape, its items not yet validated. */
type ParsedResponse = {
  /** With all digits of their numbers. */
  readonly items: readonly unknown[]
  readonly next: string | null
}

/** Ten times the largest page size. Each item could become an entry in quarantine. */
export const MAX_ITEMS = 100_000

/**
 * A byte order mark is ignored; a missing `next` means the same as null. Source: service spec 4.1 and 4.2.
 * @throws ExportError 'transient' when it is no JSON, 'shape' when it is no response, 'data' when it is too large
 */
export function parseResponse(body: Buffer, context: PageContext): ParsedResponse {
  const { query } = context
  const where = pageLocation(context)
  const text = body.subarray(hasByteOrderMark(body) ? BYTE_ORDER_MARK.length : 0)
  const response = checkedResponse(parseJson(text, where), query, where)
  requireOnce(text, where)
  return response
}

/** Partition and page for messages, in which pages count from 1 on. */
export function pageLocation({ partition, page }: PageContext): string {
  return `${partition}, page ${page + 1}`
}

function checkedResponse(parsed: unknown, query: Query, where: string): ParsedResponse {
  if (typeof parsed !== 'object' || parsed === null) throw wrongShape('is no JSON object', where)
  if (query.type === 'report') {
    const report = 'report' in parsed ? parsed.report : null
    if (typeof report !== 'object' || report === null) throw wrongShape('has no object `report`', where)
    return { items: [report], next: null }
  }
  const items = 'items' in parsed ? parsed.items : undefined
  if (!Array.isArray(items)) throw wrongShape('has no array `items`', where)
  if (items.length > MAX_ITEMS) throw wrongShape('has more `items` than a page can have', where)
  const next = ('next' in parsed ? parsed.next : null) ?? null
  if (next !== null && typeof next !== 'string') {
    throw wrongShape('has a `next` that is neither a string nor null', where)
  }
  return { items, next }
}

/** Readers differ in which of two members of one name counts, so rows could be lost in silence. */
function requireOnce(text: Buffer, where: string): void {
  const seen = new Set<unknown>()
  let at = skipSpace(text, 0)
  do {
    const key = skipSpace(text, at + 1)
    const end = skipString(text, key)
    const name: unknown = JSON.parse(text.toString('utf8', key, end))
    if ((name === 'items' || name === 'next') && seen.has(name))
      throw wrongShape(`has \`${name}\` twice`, where)
    seen.add(name)
    at = skipSpace(text, skipValue(text, skipSpace(text, skipSpace(text, end) + 1)))
  } while (text[at] === COMMA)
}

function parseJson(text: Buffer, where: string): unknown {
  // Decoding invalid UTF-8 would insert replacement characters.
  if (!isUtf8(text)) throw badResponse('transient', 'is no UTF-8', where)
  if (hasTooManyValues(text))
    throw new ExportError({
      kind: 'data',
      what: 'The response holds more values than a page can have',
      where,
      next: 'Lower extract.page_size; if the error persists, report it to the service.',
    })
  try {
    return parseExactJson(text)
  } catch {
    // The message of a SyntaxError quotes the JSON, so it is not kept as the cause.
    throw badResponse('transient', 'is no JSON', where)
  }
}

/** The JSON is whole, and no response to such a request. */
export function wrongShape(what: string, where: string): ExportError {
  return badResponse('shape', what, where)
}

function badResponse(kind: 'transient' | 'shape', what: string, where: string): ExportError {
  return new ExportError({
    kind,
    what: `The response ${what}`,
    where,
    next: 'Run again; if the error persists, something between here and the service changes its responses.',
  })
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff')

export function hasByteOrderMark(body: Uint8Array): boolean {
  return BYTE_ORDER_MARK.every((byte, i) => body[i] === byte)
}
