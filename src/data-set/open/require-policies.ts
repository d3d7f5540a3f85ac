import {
  ExportError,
  IDENTITY_POLICY_NAMES,
  INVALID_POLICIES,
  type Pipeline,
  type QuarantineLimit,
  SECRET_POLICY_NAMES,
} from '../../core/index.ts'
import { maskKeyFault, needsMaskKey, requireConsent } from '../../pipeline/index.ts'
import type { DataSetOptions } from '../options.ts'

/** A pipeline from a file was checked when it was read, one of a program was not. @throws ExportError 'config' */
export function requirePolicies(
  pipeline: Pipeline,
  { allowPlaintext, maskKey }: Pick<DataSetOptions, 'maskKey'> & { readonly allowPlaintext: boolean },
): void {
  const { transform, file } = pipeline
  const { secret, identity, onInvalid, maxQuarantined } = transform
  requireKnown('transform.secret', secret, SECRET_POLICY_NAMES, file)
  requireKnown('transform.identity', identity, IDENTITY_POLICY_NAMES, file)
  requireKnown('transform.on_invalid', onInvalid, INVALID_POLICIES, file)
  requireLimit(maxQuarantined, file)
  requireConsent(secret, allowPlaintext, file)
  if (needsMaskKey(pipeline)) requireKey(maskKey, file)
}

function requireKnown(name: string, value: unknown, known: readonly string[], file: string): void {
  if (typeof value === 'string' && known.includes(value)) return
  // The value is not shown: it may be anything.
  throw new ExportError({
    kind: 'config',
    what: `${name} is not a known policy`,
    where: file,
    next: `Choose ${known.join(', ')}.`,
  })
}

function requireLimit(limit: QuarantineLimit | undefined, file: string): void {
  if (limit?.kind === 'count' && limit.items >= 0) return
  if (limit?.kind === 'share' && limit.percent >= 0) return
  throw new ExportError({
    kind: 'config',
    what: 'transform.max_quarantined is no limit',
    where: file,
    next: "Give it as { kind: 'count', items } or as { kind: 'share', percent }.",
  })
}

function requireKey(maskKey: unknown, file: string): void {
  const fault = maskKey instanceof Uint8Array ? maskKeyFault(maskKey) : 'is not there'
  if (fault === null) return
  throw new ExportError({
    kind: 'config',
    what: `The masking key of the policy hmac ${fault}`,
    where: file,
    next: 'Set the variable that transform.mask_key_env names to 32 bytes or more, and keep it: another key gives other hashes.',
  })
}
