import { ExportError } from './errors.ts'

/** All that anybody asks of a masking policy but its mask, which is in `transform/`. The code never compares names. */
type Policy = {
  /** Whether values stand in files as the service sends them. */
  readonly shows: boolean
  /** Whether values become digests under the mask key: equal ones stay equal, and can be told from others. */
  readonly isKeyed: boolean
  readonly dropsColumn: boolean
  /** For people: what is left of the values. */
  readonly words: string
}

const HIDING = { shows: false, isKeyed: false, dropsColumn: false }
const DROP = { ...HIDING, dropsColumn: true, words: 'removed, with their column' } satisfies Policy
const HMAC = { ...HIDING, isKeyed: true, words: 'keyed digests (HMAC-SHA256)' } satisfies Policy
const SHOW = { ...HIDING, shows: true, words: 'in clear' } satisfies Policy

/** Of `transform.secret`. */
export const SECRET_POLICIES = {
  redact: { ...HIDING, words: 'removed' },
  drop: DROP,
  partial: { ...HIDING, words: 'first and last character only' },
  hmac: HMAC,
  plaintext: SHOW,
} as const satisfies Record<string, Policy>

/** Of `transform.identity`. */
export const IDENTITY_POLICIES = {
  keep: SHOW,
  hmac: HMAC,
  drop: DROP,
} as const satisfies Record<string, Policy>

export type SecretPolicy = keyof typeof SECRET_POLICIES
export type IdentityPolicy = keyof typeof IDENTITY_POLICIES

export const SECRET_POLICY_NAMES = Object.keys(SECRET_POLICIES) as [SecretPolicy, ...SecretPolicy[]]
export const IDENTITY_POLICY_NAMES = Object.keys(IDENTITY_POLICIES) as [IdentityPolicy, ...IdentityPolicy[]]

/** Types keep other policies out; what comes from elsewhere is stopped here, whatever it is. @throws ExportError `config` */
export function requireKnown(key: string, policy: unknown, known: readonly unknown[], where: string): void {
  if (known.includes(policy)) return
  // It is not shown: it may be anything.
  const next = `Choose ${known.join(', ')}.`
  throw new ExportError({ kind: 'config', what: `${key} is not a known policy`, where, next })
}
