import fc from 'fast-check'
import { expect, test } from 'vitest'
import { credentialPaths } from '../../src/transform/decoder.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import { agreement, isFastAndEqual } from './agreement.ts'
import { decodePlan, pageContext } from './plans.ts'
import { wildness } from './random-page.ts'

const PLAIN = cases(700, 80)
/** By default every third byte is changed. */
const STEP = THOROUGH ? 1 : 3
const ODD = cases(1500, 160)

test('ordinary pages take the fast path, and both paths give the same', () => {
  const { check } = agreement()
  let fast = 0
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      if (check(seed, 0)) fast++
    }),
    { numRuns: PLAIN },
  )
  expect(fast).toBe(PLAIN)
})

test('both paths give the same for pages with oddities and damage', () => {
  const { check } = agreement()
  let fast = 0
  fc.assert(
    fc.property(fc.integer(), wildness(500), (seed, wildness) => {
      if (check(seed, wildness)) fast++
    }),
    { numRuns: ODD },
  )
  expect(fast).toBeGreaterThan(ODD / 10)
})

test('both paths give the same for a page that is cut off or changed at any byte', () => {
  const paths = credentialPaths(decodePlan({ secret: 'plaintext' }))
  const body = smallPage()
  for (let at = 0; at < body.length; at += STEP) {
    isFastAndEqual(paths, body.subarray(0, at), pageContext())
    for (const byte of [0x22, 0x5c, 0x20]) {
      const changed = Buffer.from(body)
      changed[at] = byte
      isFastAndEqual(paths, changed, pageContext())
    }
  }
})

function smallPage(): Buffer {
  const source = {
    id: 'leak_1',
    name: 'Lantern Market 2019',
    description_en: 'Credentials collected from Lantern Market. Invented for tests.',
    description_fr: null,
    is_alert_enabled: true,
    breached_at: '2019-03-04T00:00:00+00:00',
    leaked_at: null,
  }
  const item = {
    id: 33880703907,
    domain: 'scatterholt.com',
    identity_name: 'ada.loam@scatterholt.com',
    hash: 'tea"pot\u00e9',
    hash_type: null,
    imported_at: '2024-07-22T19:25:52.893439+00:00',
    known_password_id: 12,
    source_id: 'leak_1',
    source,
    urls: ['https://a.example'],
  }
  return Buffer.from(JSON.stringify({ items: [item, { ...item, id: 33880703908 }], next: 'WzE3' }))
}
