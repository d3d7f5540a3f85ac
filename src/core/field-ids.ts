import { crc32 } from 'node:zlib'

/**
 * The `field_id` of each column in Parquet files. Table formats know a column by it, whatever it is called or wherever it
 * stands, so an id is never changed and never given to another column; a new column gets the next number.
 */
const FIELD_IDS: Readonly<Record<string, number>> = {
  id: 1,
  domain: 2,
  identity_name: 3,
  hash: 4,
  hash_type: 5,
  imported_at: 6,
  known_password_id: 7,
  source_id: 8,
  source_name: 9,
  source_description_en: 10,
  source_description_fr: 11,
  source_is_alert_enabled: 12,
  source_breached_at: 13,
  source_leaked_at: 14,
  query_type: 15,
  query_value: 16,
  auth_domains: 17,
  urls: 18,
  event_uid: 19,
  credential_hash: 20,
  source_pii_tags: 21,
  source_url: 22,
  // Reports; they share `id` with credentials.
  format_type: 101,
  title: 102,
  subtitle: 103,
  summary: 104,
  content: 105,
  tags: 106,
  highlights: 107,
  related_activity_uids: 108,
  prompt_preset_uid: 109,
  created_at: 110,
  published_at: 111,
  updated_at: 112,
  reading_time: 113,
  tenant_id: 114,
  organization_id: 115,
}

const FIRST_OF_ELEMENTS = 1000
// Up to 2,001,000,000: the last 200 numbers of 31 bits are Iceberg's own.
const FIRST_OF_NAMES = 1_000_000
const COUNT_OF_NAMES = 2_000_000_000

/** The id of a column. One that only a pipeline file knows has one that is made of its name. */
export function fieldId(column: string): number {
  return Object.hasOwn(FIELD_IDS, column)
    ? FIELD_IDS[column]!
    : FIRST_OF_NAMES + (crc32(column) % COUNT_OF_NAMES)
}

/** The id of the elements of a column of lists: they are fields of their own. */
export function elementFieldId(column: string): number {
  return FIRST_OF_ELEMENTS + fieldId(column)
}
