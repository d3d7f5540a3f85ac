/** What a field of a credential is, to the item scanner. Kinds are bits: what a field may be is a set of them. */
export const KIND = {
  missing: 0,
  null: 1,
  text: 2,
  escapedText: 4,
  integer: 8,
  texts: 16,
  source: 32,
  /** Valid JSON of whatever kind, because the schema has no rule for the field. */
  any: 64,
} as const

const TEXT = KIND.text | KIND.escapedText

/** Name, kinds that the credential schema takes, and whether it may be missing: by field number. */
const FIELDS: readonly (readonly [name: string, kinds: number, required: boolean])[] = [
  ['id', KIND.integer, true],
  ['domain', KIND.null | TEXT, false],
  ['identity_name', TEXT, true],
  ['hash', KIND.null | TEXT, false],
  ['hash_type', KIND.null | TEXT, false],
  ['imported_at', KIND.text, true],
  ['known_password_id', KIND.null | KIND.integer | TEXT, false],
  ['source_id', TEXT, true],
  ['source', KIND.null | KIND.source, false],
  ['auth_domains', KIND.null | KIND.texts, false],
  ['urls', KIND.null | KIND.texts, false],
  ['credential_hash', KIND.any, false],
  ['event_uid', KIND.any, false],
]

export const ID = 0
export const DOMAIN = 1
export const IDENTITY_NAME = 2
export const HASH = 3
export const HASH_TYPE = 4
export const IMPORTED_AT = 5
export const KNOWN_PASSWORD_ID = 6
export const SOURCE_ID = 7
export const SOURCE = 8
export const AUTH_DOMAINS = 9
export const URLS = 10

/** Fields whose value the scanner does not look into, by their names. */
export const ANY_FIELDS: ReadonlyMap<string, number> = new Map([
  ['credential_hash', 11],
  ['event_uid', 12],
])

export const FIELD_COUNT = FIELDS.length
/** Stands for every field that has no number. */
export const UNKNOWN = FIELD_COUNT

export const REQUIRED: readonly number[] = FIELDS.flatMap(([, , required], field) =>
  required ? [field] : [],
)
export const ALLOWED = Uint8Array.from(FIELDS, ([, kinds]) => kinds)

/**
 * Names in quotes, as the answer has them, as little-endian words: four characters are compared at once.
 * Word i of a field stands at `field * KEY_WORDS + i`; its last one is the last four characters, so it
 * overlaps the one before unless the length is a multiple of four.
 */
export const KEY_WORDS = 8
export const KEY_LENGTHS = Uint8Array.from(FIELDS, ([name]) => name.length + 2)
export const KEYS = new Int32Array(FIELD_COUNT * KEY_WORDS)
export const KEY_ENDS = new Int32Array(FIELD_COUNT)
for (const [field, [name]] of FIELDS.entries()) {
  const key = Buffer.from(`"${name}"`)
  for (let i = 0; i + 4 <= key.length; i += 4) KEYS[field * KEY_WORDS + i / 4] = key.readInt32LE(i)
  KEY_ENDS[field] = key.readInt32LE(key.length - 4)
}
