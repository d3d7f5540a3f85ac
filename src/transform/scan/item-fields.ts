/** Kinds of values, to the item walker (assembly/). They are bits: what a field may be is a set of them. */
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

/** What a row of a run has of a field. */
export const STATE = { null: 0, text: 1, escapedText: 2, sameText: 3 } as const

const TEXT = KIND.text | KIND.escapedText

/** Name and kinds that the credential schema takes, by field number. Which of them are required the walker knows. */
export const FIELDS: readonly (readonly [name: string, kinds: number])[] = [
  ['id', KIND.integer],
  ['domain', KIND.null | TEXT],
  ['identity_name', TEXT],
  ['hash', KIND.null | TEXT],
  ['hash_type', KIND.null | TEXT],
  ['imported_at', KIND.text],
  ['known_password_id', KIND.null | KIND.integer | TEXT],
  ['source_id', TEXT],
  ['source', KIND.null | KIND.source],
  ['auth_domains', KIND.null | KIND.texts],
  ['urls', KIND.null | KIND.texts],
  ['credential_hash', KIND.any],
  ['event_uid', KIND.any],
]

export const DOMAIN = 1
export const IDENTITY_NAME = 2
export const HASH = 3
export const HASH_TYPE = 4
export const KNOWN_PASSWORD_ID = 6
export const SOURCE_ID = 7
export const SOURCE = 8
export const AUTH_DOMAINS = 9
export const URLS = 10
