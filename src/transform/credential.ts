import { z } from 'zod'
import { optionalText, optionalTexts, optionalTimestamp, timestamp } from './schema-parts.ts'

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
 * A leaked credential as the search answers it. Integers beyond 2^53 are refused, never rounded.
 * Source: service spec 2.2; `auth_domains`, `urls` and nullability from the public documentation.
 */
export const credentialSchema = z.object({
  id: z.int(),
  domain: optionalText,
  identity_name: z.string(),
  hash: optionalText,
  hash_type: optionalText,
  imported_at: timestamp,
  known_password_id: z.union([z.string(), z.int()]).nullish(),
  source_id: z.string(),
  source: sourceSchema.nullish(),
  auth_domains: optionalTexts,
  urls: optionalTexts,
})

export type Source = z.infer<typeof sourceSchema>
export type Credential = z.infer<typeof credentialSchema>

/** Fields that are no news. Those without a rule in the schema are neither checked nor exported. */
export const CREDENTIAL_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(credentialSchema.shape),
  'credential_hash',
  'event_uid',
])
export const SOURCE_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(sourceSchema.shape),
  'pii_tags',
  'url',
])
