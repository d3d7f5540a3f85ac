import type { Int64 } from '../core/index.ts'

/**
 * Types of the columns of credentials, by name. `docs/file-formats.md` describes each. The pipeline file selects the
 * columns. An id is a bigint if a double is not exact.
 */
export type Credential<Time = Int64> = {
  id: number | bigint
  domain: string | null
  identity_name: string
  hash: string | null
  hash_type: string | null
  imported_at: Time
  source_id: string
  source_name: string | null
  source_description_en: string | null
  source_description_fr: string | null
  source_is_alert_enabled: boolean | null
  source_breached_at: Time | null
  source_leaked_at: Time | null
  query_type: string
  query_value: string
  // Exported only if `extract.include` or `transform.extra_columns` names them, or `transform.secret_facts` is there.
  known_password_id: string | null
  auth_domains: readonly (string | null)[] | null
  urls: readonly (string | null)[] | null
  event_uid: string | null
  credential_hash: string | null
  source_url: string | null
  source_pii_tags: readonly (string | null)[] | null
  secret_kind: string | null
  secret_meets_policy: boolean | null
  // With `resource: feed`.
  remediated_at: Time | null
  ignored_at: Time | null
}

export type CredentialColumn = keyof Credential
