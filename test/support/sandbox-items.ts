/** A credential as it comes over the wire. Source: spec 2.2 and 2.3, nullability as publicly documented. */
export type CredentialJson = {
  id: number
  domain: string | null
  identity_name: string
  hash: string | null
  hash_type: string | null
  imported_at: string
  known_password_id?: number | null
  auth_domains?: string[]
  urls?: string[]
  credential_hash?: string
  event_uid?: string | null
  source_id: string
  source: SourceJson | null
}

type SourceJson = {
  id: string
  name: string | null
  description_en: string | null
  description_fr: string | null
  is_alert_enabled: boolean
  breached_at: string | null
  leaked_at: string | null
  url?: string | null
  pii_tags?: string[] | null
}

/** A credential as it comes from a feed. Source: the public documentation. */
export type FeedItem = Omit<CredentialJson, 'hash_type' | 'source'> & {
  source: Omit<NonNullable<CredentialJson['source']>, 'is_alert_enabled'> | null
  remediated_at: string | null
  ignored_at: string | null
}
