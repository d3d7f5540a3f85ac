import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import type { DecodePlan, PageContext } from '../../src/core/index.ts'
import { type CredentialPaths, credentialPaths } from '../../src/transform/credential-decoder.ts'
import { type Random, random } from '../support/random.ts'
import { decodePlan, pageContext, rowsOf } from './plans.ts'
import { EPOCH, pick, randomPage } from './random-page.ts'

const PLANS: readonly DecodePlan[] = [
  decodePlan(),
  decodePlan({ order: 'desc', secret: 'partial', identity: 'hmac' }),
  decodePlan({ secret: 'hmac', identity: 'drop' }),
  decodePlan({ secret: 'plaintext' }),
  decodePlan({ secret: 'drop', onInvalid: 'fail' }),
  decodePlan({ secret: 'plaintext', columns: decodePlan().columns.filter((_, i) => i % 3 === 0) }),
]

/** Both paths of every plan, kept, so that what they remember of earlier pages is put to the test as well. */
export function agreement(): { check: (seed: number, wildness: number) => boolean } {
  const paths = PLANS.map((plan) => credentialPaths(plan))
  return {
    check: (seed, wildness) => {
      const next = random(seed)
      const body = randomPage(next, wildness)
      const context = next() < wildness ? randomContext(next) : pageContext()
      return isFastAndEqual(pick(next, paths), body, context)
    },
  }
}

/** @returns whether the fast path understood the page; @throws when it made something else of it */
export function isFastAndEqual(
  { fast, plain }: CredentialPaths,
  body: Buffer,
  context: PageContext,
): boolean {
  const page = fast(body, context)
  if (page === null) return false
  const expected = plain(body, context)
  const [a, b] = [page, expected].map((decoded) => ({ ...decoded, frame: rowsOf(decoded) }))
  // The quick comparison first: there are many pages.
  if (!isDeepStrictEqual(a, b)) expect(a).toStrictEqual(b)
  return true
}

function randomContext(next: Random): PageContext {
  const second = 1_000_000
  const window = { from: EPOCH - second, until: EPOCH + Math.floor(next() * 20) * second }
  const since = { at: EPOCH, ids: [33880703907, 33880703909, '9223372036854775805'] }
  return next() < 0.5 ? pageContext({ window }) : pageContext({ since })
}
