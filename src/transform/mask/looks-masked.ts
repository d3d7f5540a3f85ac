import type { IdentityPolicy, SecretPolicy } from '../../core/index.ts'
import { REDACTED } from './mask.ts'

/**
 * Whether a stored value can have come from a policy: what a check of finished files can know without the
 * secrets. A null is masked under every policy; under `drop` only the constant may appear. Of a policy that
 * nobody knows nothing can have come.
 */
export function looksMasked(policy: SecretPolicy | IdentityPolicy, value: string | null): boolean {
  if (value === null) return true
  switch (policy) {
    case 'redact':
    case 'drop':
      return value === REDACTED
    case 'partial':
      return value === REDACTED || /^.\*{4}.$/su.test(value)
    case 'hmac':
      return /^[0-9a-f]{64}$/.test(value)
    case 'plaintext':
    case 'keep':
      return true
    default:
      return isKnown(policy)
  }
}

/** For what the types keep out, and a caller without types may still bring. */
function isKnown(_policy: never): boolean {
  return false
}
