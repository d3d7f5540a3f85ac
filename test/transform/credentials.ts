import type { DecodedPage, DecodeSettings, PageContext } from '../../src/rows/index.ts'
import { createDecoder, type Decoder } from '../../src/transform/index.ts'
import { decodeSettings, pageContext, type Row, rowsOf } from './plans.ts'

type Fields = Readonly<Record<string, unknown>>

export function source(changes: Fields = {}): Fields {
  return {
    id: 'leak_1',
    name: 'Lantern Market 2019',
    description_en: 'Credentials collected from Lantern Market. Invented for tests.',
    description_fr: 'Identifiants relevés sur Lantern Market. Données inventées.',
    is_alert_enabled: true,
    breached_at: '2019-03-04T00:00:00+00:00',
    leaked_at: null,
    ...changes,
  }
}

const ID = 33880703907

export function credential(changes: Fields = {}): Fields {
  return {
    id: ID,
    domain: 'scatterholt.com',
    identity_name: 'ada.loam@scatterholt.com',
    hash: 'sunflower-42',
    hash_type: 'unknown',
    imported_at: '2024-07-22T19:25:52.893439+00:00',
    known_password_id: null,
    source_id: 'leak_1',
    source: source(),
    ...changes,
  }
}

/** Items with the default id get an id each: otherwise they would be repeats of one row. */
function distinct(items: readonly unknown[]): readonly unknown[] {
  return items.map((item, i) =>
    typeof item === 'object' && item !== null && 'id' in item && item.id === ID
      ? { ...item, id: ID + i }
      : item,
  )
}

export function credentialsAt(...instants: readonly string[]): readonly Fields[] {
  return instants.map((imported_at, i) => credential({ id: i + 1, imported_at }))
}

export function response(items: readonly unknown[], next: unknown = null): Buffer {
  return Buffer.from(JSON.stringify({ items: distinct(items), next }))
}

export function decode(
  items: readonly unknown[],
  plan: Partial<DecodeSettings> = {},
  context: Partial<PageContext> = {},
): DecodedPage {
  const key = JSON.stringify(plan)
  const decoder = decoders.get(key) ?? createDecoder(decodeSettings(plan))
  decoders.set(key, decoder)
  return decoder(response(items), pageContext(context))
}

/** By their settings. A decoder is dear, and serves many pages. */
const decoders = new Map<string, Decoder>()

export function decodedRows(items: readonly unknown[], plan: Partial<DecodeSettings> = {}): readonly Row[] {
  return rowsOf(decode(items, plan))
}
