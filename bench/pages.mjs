/**
 * Made-up search responses that resemble real ones in what matters for speed: one source occurs in thousands of
 * credentials, an item is about 700 bytes of JSON, identities are unique, secrets are short.
 */

export const SHAPES = {
  typical: {},
  'all pages different': { different: true },
  'no repeated sources': { sources: Number.POSITIVE_INFINITY },
  '20,000 sources': { sources: 20_000 },
  'spaced JSON': { spaced: true },
  'escaped JSON': { nonLatin: true, escaped: true },
  'non-Latin text': { nonLatin: true },
  'nine unknown fields': { unknown: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'] },
  'a field that begins with a digit': { unknown: ['2fa_enabled'] },
  'a field with an escaped name': { unknown: ['\\u0061'] },
  '64 kB secrets': { secretBytes: 65_536, items: 100 },
  '100-row pages': { items: 100 },
  '50-row pages': { items: 50 },
  '3-row pages': { items: 3 },
  '100,000-row pages': { items: 100_000 },
}

/** The `items` array of page `number`, as JSON text. The same arguments give the same text. */
export function renderItems(number, shape = {}) {
  const {
    items = 10_000,
    sources = 200,
    spaced = false,
    nonLatin = false,
    escaped = false,
    secretBytes = 0,
    unknown = [],
  } = shape
  const random = generator(number + 1)
  const parts = []
  for (let index = 0; index < items; index++) {
    const serial = number * items + index
    const credential = credentialOf(serial, random, sources, nonLatin, secretBytes)
    const more = unknown.map((name) => `,"${name}":${serial}`).join('')
    const json = `${JSON.stringify(credential, null, spaced ? 2 : 0).slice(0, -1)}${more}}`
    parts.push(escaped ? json.replace(/[^ -~\n]/g, escapeCharacter) : json)
  }
  return `[${parts.join(spaced ? ',\n' : ',')}]`
}

function credentialOf(serial, random, sources, nonLatin, secretBytes) {
  const source = sourceOf(
    sources === Number.POSITIVE_INFINITY ? serial : Math.floor(random() * sources),
    nonLatin,
  )
  const name = `${pick(nonLatin ? NON_LATIN : NAMES, random)}.${Math.floor(random() * 1e7).toString(36)}`
  const secret = secretBytes > 0 ? 'x'.repeat(secretBytes) : Math.floor(random() * 1e12).toString(36)
  return {
    id: 33_880_000_000 + serial,
    domain: 'scatterholt.com',
    identity_name: `${name}@scatterholt.com`,
    hash: random() < 0.02 ? null : secret,
    hash_type: random() < 0.8 ? null : 'unknown',
    imported_at: new Date(1.7e12 + serial * 1000).toISOString().replace('Z', `${100 + (serial % 900)}+00:00`),
    source_id: source.id,
    source,
  }
}

const sourceCache = new Map()

function sourceOf(number, nonLatin) {
  const key = `${number}${nonLatin}`
  const cached = sourceCache.get(key)
  if (cached !== undefined) return cached
  const word = nonLatin ? 'утечка данных 漏洩' : 'a collection of records that appeared'
  const source = {
    id: `leak_${number.toString(36).padStart(8, '0')}`,
    name: `Leak ${number}`,
    description_en: `Number ${number}: ${word} on a forum and was offered for download there; it holds addresses and secrets of several services.`,
    description_fr: `Numéro ${number} : ${word} sur un forum, proposé au téléchargement ; il contient des adresses et des secrets de plusieurs services.`,
    is_alert_enabled: number % 3 === 0,
    breached_at: number % 2 === 0 ? '2023-05-01T00:00:00+00:00' : null,
    leaked_at: number % 5 === 0 ? null : '2023-11-17T08:30:00+00:00',
  }
  if (sourceCache.size < 50_000) sourceCache.set(key, source)
  return source
}

const NAMES = ['amelie', 'bertrand', 'carla', 'dimitri', 'elena', 'farid', 'greta', 'hugo', 'ines', 'jonas']
const NON_LATIN = ['андрей', 'мария', '太郎', '花子', 'أحمد', 'δημήτρης', 'שרה', '철수']

function pick(list, random) {
  return list[Math.floor(random() * list.length)]
}

function escapeCharacter(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** mulberry32: small, fast, the same numbers on every machine. */
function generator(seed) {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
