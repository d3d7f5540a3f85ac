import type { DecodeSettings } from '../../src/rows/index.ts'
import { CredentialPage } from '../../src/transform/credential-page.ts'
import { createDecoder } from '../../src/transform/index.ts'
import { type Decode, hasByteOrderMark, parseResponse } from '../../src/transform/response.ts'
import {
  CLOSE_BRACKET,
  COMMA,
  memberAt,
  OPEN_BRACKET,
  skipSpace,
  skipValue,
} from '../../src/transform/scan/json-steps.ts'

/** Decodes pages by JSON.parse and the schema alone: what pages must come to, in the simplest way. */
export function plainPages(plan: DecodeSettings): Decode {
  const page = new CredentialPage(plan)
  return (body, context) => {
    const { items, next } = parseResponse(body, context)
    page.begin(context)
    const starts = itemStarts(body)
    for (const [index, item] of items.entries()) page.add(item, index, body, starts[index]!)
    return page.finish(items.length, next)
  }
}

/** Where the items of a valid response begin, in their order: for values that JSON.parse does not keep as they are. */
function itemStarts(body: Buffer): readonly number[] {
  const starts: number[] = []
  const [value] = memberAt(body, skipSpace(body, hasByteOrderMark(body) ? 3 : 0), 'items') ?? []
  if (value === undefined || body[value] !== OPEN_BRACKET) return starts
  let at = skipSpace(body, value + 1)
  while (body[at] !== CLOSE_BRACKET) {
    starts.push(at)
    at = skipSpace(body, skipValue(body, at))
    if (body[at] === COMMA) at = skipSpace(body, at + 1)
  }
  return starts
}

export type Readers = {
  /** As the product reads pages. */
  readonly read: Decode
  readonly plain: Decode
}

export function readersOf(plan: DecodeSettings): Readers {
  const decode = createDecoder(plan)
  return { read: (body, context) => decode(body, context), plain: plainPages(plan) }
}
