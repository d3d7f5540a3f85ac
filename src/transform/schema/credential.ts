import * as z from 'zod'
import { integer, optionalText, optionalTexts, optionalTimestamp, timestamp } from './schema-parts.ts'

/**
 * A leak source. Source: service spec 2.3; what may be null follows the public documentation, and what
 * may be null may be left out.
 */
export const sourceSchema = z.object({
  id: z.string(),
  name: optionalText,
  description_en: optionalText,
  description_fr: optionalText,
  is_alert_enabled: z.boolean().nullish(),
  breached_at: optionalTimestamp,
  leaked_at: optionalTimestamp,
})

/**
 * A leaked credential as the search returns it. Integers beyond 64 bits are refused, never rounded.
 * Source: service spec 2.2; `auth_domains`, `urls` and nullability from the public documentation.
 */
const anyCredentialSchema = z.object({
  id: integer,
  domain: optionalText,
  identity_name: z.string(),
  hash: optionalText,
  hash_type: optionalText,
  imported_at: timestamp,
  known_password_id: z.union([z.string(), integer]).nullish(),
  source_id: z.string(),
  source: sourceSchema.nullish(),
  auth_domains: optionalTexts,
  urls: optionalTexts,
})

/** The same for nearly all, whose integers are plain numbers. */
const usualCredentialSchema = anyCredentialSchema.extend({
  id: z.int(),
  known_password_id: z.union([z.string(), z.int()]).nullish(),
})

/**
 * Holds an item against the schema.
 * @param exact the same with all digits of its numbers; only asked for where the schema refuses the item as it is
 */
export function parseCredential(item: unknown, exact: () => unknown): z.ZodSafeParseResult<Credential> {
  const usual = usualCredentialSchema.safeParse(item)
  return usual.success ? usual : anyCredentialSchema.safeParse(exact())
}

export type Source = z.infer<typeof sourceSchema>
export type Credential = z.infer<typeof anyCredentialSchema>

/** Fields that are no news. Those without a rule in the schema are neither checked nor exported. */
export const CREDENTIAL_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(anyCredentialSchema.shape),
  'credential_hash',
  'event_uid',
])
export const SOURCE_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(sourceSchema.shape),
  'pii_tags',
  'url',
])
