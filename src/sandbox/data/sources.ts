import type { Settings } from '../options.ts'
import { formatTimestamp } from './timeline.ts'
import { fraction, hash32, NASTY_TEXTS, SOURCE_PLACES } from './words.ts'

/** The end of a credential's JSON, kept as bytes too: it repeats on thousands of credentials. */
export type SourceText = { readonly text: string; readonly bytes: Buffer }

export const NULL_SOURCE_TEXT: SourceText = sourceText('null}')
export const NO_TEXT: SourceText = sourceText('')

export type Sources = {
  readonly ids: readonly string[]
  /** What follows `"source":` in a credential, for every source. */
  readonly texts: readonly SourceText[]
  /** Which source a credential comes from. A few sources carry most of the credentials. */
  pick(position: number): number
}

const FIELD = 200
const YEAR_MICROS = 365 * 86_400_000_000

/** Source: spec 2.3. Now and then a field is null where the documentation allows it. Leaks precede all imports. */
export function sources(settings: Settings): Sources {
  const { seed, sources: count } = settings
  const ids: string[] = []
  const texts: SourceText[] = []
  for (let i = 0; i < count; i++) {
    const id = `leak_${hash32(seed, i, FIELD).toString(36)}_${i}`
    ids.push(id)
    texts.push(sourceText(`${JSON.stringify(source(settings, i, id))}}`))
  }
  const pick = (position: number): number => {
    const share = fraction(seed, position, FIELD + 1)
    return Math.floor(share * share * count)
  }
  return { ids, texts, pick }
}

function sourceText(text: string): SourceText {
  return { text, bytes: Buffer.from(text) }
}

/** Required by the public documentation, and null now and then. */
function publicFieldsOf(i: number): { url: string | null; pii_tags: readonly string[] | null } {
  const tags = ['email', 'password', 'phone number', 'date of birth']
  return {
    url: i % 9 === 4 ? null : `https://leaks.tarnhollow.io/${i}`,
    pii_tags: i % 11 === 6 ? null : tags.slice(0, i % 5),
  }
}

function source({ seed, from, nastyRate, publicFields }: Settings, i: number, id: string) {
  const bits = hash32(seed, i, FIELD + 2)
  const forum = SOURCE_PLACES[bits % SOURCE_PLACES.length]!
  const breached = Math.floor(from - YEAR_MICROS * (1 + 6 * fraction(seed, i, FIELD + 3)))
  const leaked = breached + Math.floor(YEAR_MICROS * fraction(seed, i, FIELD + 4))
  const year = new Date(leaked / 1000).getUTCFullYear()
  // Every seventh has an awkward name: there are few sources, so chance would mostly leave none.
  const awkward = nastyRate > 0 && i % 7 === 5 ? ` ${NASTY_TEXTS[Math.floor(i / 7) % 28]}` : ''
  return {
    id,
    name: i % 50 === 13 ? null : `${forum} ${year}${awkward}`,
    description_en:
      i % 50 === 17 ? null : `Credentials collected from ${forum} in ${year}.${awkward} Invented for tests.`,
    description_fr:
      i % 10 === 3 ? null : `Identifiants relevés sur ${forum} en ${year}.${awkward} Données inventées.`,
    is_alert_enabled: bits % 5 !== 0,
    breached_at: i % 3 === 1 ? null : formatTimestamp(breached - (breached % 1_000_000), '+00:00', true),
    leaked_at: i % 4 === 1 ? null : formatTimestamp(leaked, i % 8 === 2 ? 'Z' : '+00:00', true),
    ...(publicFields ? publicFieldsOf(i) : {}),
  }
}
