import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { type ExtraField, isExportError, plainError } from '../../src/core/index.ts'
import {
  type DecodedPage,
  type DecodeSettings,
  KNOWN_EXTRAS,
  type PageContext,
} from '../../src/rows/index.ts'
import { type Random, random } from '../support/random.ts'
import { type Readers, readersOf } from './plain-pages.ts'
import { decodeSettings, pageContext, rowsOf } from './plans.ts'
import { EPOCH, pick, randomPage } from './random-page.ts'

/** Fields that some of the random pages have, of every type. */
const EXTRAS: readonly ExtraField[] = [
  ...KNOWN_EXTRAS,
  unknownField('severity', 'details.severity', 'string'),
  unknownField('level', 'details.level', 'int64'),
  unknownField('is_open', 'details.is_open', 'boolean'),
  unknownField('seen_at', 'details.more.seen_at', 'timestamp'),
  unknownField('more', 'details.more', 'json'),
  unknownField('score', 'score', 'json'),
  unknownField('tags_a', 'tags.a', 'json'),
  unknownField('prototype', '__proto__.a', 'json'),
  unknownField('maker', 'constructor', 'string'),
  unknownField('seven', '7', 'json'),
  unknownField('key', 'source.ключ', 'json'),
  unknownField('source_b', 'source.tags.a.b', 'string'),
]

export function unknownField(name: string, path: string, type: ExtraField['type']): ExtraField {
  return { name, path: path.split('.'), type, meaning: null }
}

export const PLANS: readonly DecodeSettings[] = [
  decodeSettings({ extras: EXTRAS }),
  decodeSettings({
    extras: EXTRAS,
    secret: 'hmac',
    identity: 'hmac',
    secretFacts: { policy: { minLength: 12, classes: 3 } },
  }),
  decodeSettings({ extras: EXTRAS.slice(0, 2), secret: 'plaintext' }),
  decodeSettings(),
  decodeSettings({ order: 'desc', secret: 'partial', identity: 'hmac' }),
  decodeSettings({ secret: 'hmac', identity: 'drop' }),
  decodeSettings({ secret: 'plaintext' }),
  decodeSettings({ secret: 'drop', secretFacts: { policy: { minLength: 4, classes: 2 } } }),
  decodeSettings({ secret: 'plaintext', columns: decodeSettings().columns.filter((_, i) => i % 3 === 0) }),
]

/** Both readers of every plan. They are kept, so that their caches of earlier pages are tested as well. */
export function agreement(): { check: (seed: number, wildness: number, items?: number) => boolean } {
  const readers = PLANS.map(readersOf)
  return {
    check: (seed, wildness, items) => {
      const next = random(seed)
      const body = randomPage(next, wildness, items)
      const context = next() < wildness ? randomContext(next) : pageContext()
      return isEqual(pick(next, readers), body, context)
    },
  }
}

/** @returns whether it is a page; @throws when the result, or the error, is not the plain reader's */
export function isEqual({ read, plain }: Readers, body: Buffer, context: PageContext): boolean {
  const [a, b] = [read, plain].map((decode) => resultOf(() => decode(body, context)))
  // The quick comparison first: there are many pages.
  if (!isDeepStrictEqual(a, b)) expect(a).toStrictEqual(b)
  return 'rows' in a!
}

/** The page of some items, or of their JSON, on which both readers agree. */
export function agreedPage(
  items: readonly (object | string)[],
  plan: Partial<DecodeSettings> = {},
  context = pageContext(),
): DecodedPage {
  const readers = readersOf(decodeSettings(plan))
  const texts = items.map((item) => (typeof item === 'string' ? item : JSON.stringify(item)))
  const body = Buffer.from(`{"items":[${texts}],"next":null}`)
  expect(isEqual(readers, body, context)).toBe(true)
  return readers.read(body, context)
}

function resultOf(decode: () => DecodedPage): object {
  try {
    const page = decode()
    return { ...page, recordBatch: rowsOf(page) }
  } catch (error) {
    if (!isExportError(error)) throw error
    return { error: plainError(error) }
  }
}

/** A requested range around the times of the page, partly of other chains, or a restarted chain. */
function randomContext(next: Random): PageContext {
  const second = 1_000_000
  const requested = { from: EPOCH - second, until: EPOCH + Math.floor(next() * 20) * second }
  const own = {
    from: EPOCH + (Math.floor(next() * 6) - 1) * second,
    until: requested.until - Math.floor(next() * 3) * second,
  }
  const rows = new BigInt64Array([33880703907n, 33880703909n, 9223372036854775805n])
  const known = [{ rows: new Int32Array(rows.buffer), rejected: new Int32Array(0) }]
  switch (Math.floor(next() * 4)) {
    case 0:
      return pageContext({ window: requested })
    case 1:
      return pageContext({ since: EPOCH, known })
    case 2:
      return pageContext({ requested, own })
    default:
      return pageContext({ own })
  }
}
