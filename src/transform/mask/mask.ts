import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import {
  ExportError,
  IDENTITY_POLICY_NAMES,
  type IdentityPolicy,
  identityIn,
  type Query,
  queryLabel,
  requireKnown,
  SECRET_POLICY_NAMES,
  type SecretPolicy,
} from '../../core/index.ts'
import type { DecodeSettings, SuppressList } from '../../rows/index.ts'
import { normalIdentity, normalizePlain } from './normal-form.ts'

export const REDACTED = '[REDACTED]'

/** Rewrites the UTF-8 text at [start, end) in place, with {@link MASK_ROOM} from `start` on. @returns its new end */
export type Mask = (bytes: Buffer, start: number, end: number) => number

/** Bytes that the longest mask can need: SHA-256 in hex. */
export const MASK_ROOM = 64

type MaskPolicies = Pick<DecodeSettings, 'secret' | 'identity' | 'maskKey'>

/** The masks of settings; null: the value stays as it is. Under `drop`, what cannot be left out is redacted. */
export type Masks = { readonly secret: Mask | null; readonly identity: Mask | null }

/** @throws ExportError 'config' when a policy is none that is known, or needs a key and there is none */
export function masksOf({ secret, identity, maskKey }: MaskPolicies): Masks {
  requireKnown('transform.secret', secret, SECRET_POLICY_NAMES, 'transform')
  requireKnown('transform.identity', identity, IDENTITY_POLICY_NAMES, 'transform')
  return {
    secret: POLICIES[secret].mask(maskKey, 'secret'),
    identity: POLICIES[identity].mask(maskKey, 'identity'),
  }
}

/** The same masks for a JavaScript string. Lone surrogates become U+FFFD first. */
export function maskText(mask: Mask | null, text: string): string {
  if (mask === null) return text.toWellFormed()
  const bytes = Buffer.alloc(3 * text.length + MASK_ROOM)
  const end = mask(bytes, 0, bytes.write(text))
  return bytes.toString('utf8', 0, end)
}

/** @param secretValue the secret of a secret query, from its variable; null for every other kind */
export function maskedQueryValue(query: Query, secretValue: string | null, policies: MaskPolicies): string {
  if (query.type === 'secret')
    return secretValue === null ? REDACTED : maskText(masksOf(policies).secret, secretValue)
  const label = queryLabel(query)
  return identityIn(query.type) === 'none' ? label : identityHider(policies)(label)
}

export function identityHider({
  identity,
  maskKey,
}: Pick<MaskPolicies, 'identity' | 'maskKey'>): (text: string) => string {
  const mask = POLICIES[identity].mask(maskKey, 'identity')
  return (text) => maskText(mask, text)
}

/** The digest of an identity, as keyed policies write it. */
export function identityDigest(maskKey: Uint8Array | null): (text: string) => string {
  const mask = digestMask(maskKey, 'identity')
  return (text) => maskText(mask, text)
}

/** Whether a mask writes the same for every value. */
export function isConstant(mask: Mask | null): boolean {
  return mask === redact
}

/** Whether it can have come from a policy: all that can be known without the secrets. A null is masked under each. */
export function looksMasked(policy: SecretPolicy | IdentityPolicy, value: string | null): boolean {
  return value === null || (Object.hasOwn(POLICIES, policy) && POLICIES[policy].looksMade(value))
}

type Policy = {
  /** The mask; null: the value stays as it is. */
  mask(key: Uint8Array | null, of: Masked): Mask | null
  looksMade(value: string): boolean
}

const REDACTING: Policy = { mask: () => redact, looksMade: (value) => value === REDACTED }
const KEEPING: Policy = { mask: () => null, looksMade: () => true }

const POLICIES: Readonly<Record<SecretPolicy | IdentityPolicy, Policy>> = {
  redact: REDACTING,
  drop: REDACTING,
  partial: { mask: () => partial, looksMade: (value) => value === REDACTED || /^.\*{4}.$/su.test(value) },
  hmac: { mask: digestMask, looksMade: (value) => /^[0-9a-f]{64}$/.test(value) },
  plaintext: KEEPING,
  keep: KEEPING,
}

const REDACTED_BYTES = Buffer.from(REDACTED)

function redact(bytes: Buffer, start: number): number {
  bytes.set(REDACTED_BYTES, start)
  return start + REDACTED_BYTES.length
}

/** Shorter secrets would be given away by their first and last character. */
const MIN_PARTIAL_LENGTH = 6
const STARS = Buffer.from('****')

/** First and last code point and a fixed `****`, so that the length stays unknown. */
function partial(bytes: Buffer, start: number, end: number): number {
  let codePoints = 0
  for (let i = start; i < end && codePoints < MIN_PARTIAL_LENGTH; i++) {
    if (startsCodePoint(bytes[i]!)) codePoints++
  }
  if (codePoints < MIN_PARTIAL_LENGTH) return redact(bytes, start)
  let second = start + 1
  while (!startsCodePoint(bytes[second]!)) second++
  let last = end - 1
  while (!startsCodePoint(bytes[last]!)) last--
  bytes.copyWithin(second + STARS.length, last, end)
  bytes.set(STARS, second)
  return second + STARS.length + (end - last)
}

function startsCodePoint(byte: number): boolean {
  return (byte & 0xc0) !== 0x80
}

/** Digests of secrets and identities never compare: a credential whose password is its address would show. */
const IDENTITY_DOMAIN = 'identity:'

type Masked = 'secret' | 'identity'

/** HMAC-SHA256 in hex, in place of a secret, or of an identity in any spelling. */
function digestMask(maskKey: Uint8Array | null, of: Masked): Mask {
  if (maskKey === null) {
    throw new ExportError({
      kind: 'config',
      what: 'An hmac policy needs a mask key and there is none',
      where: 'transform',
      next: 'Set the variable that transform.mask_key_env names to at least 32 bytes.',
    })
  }
  // Made once: to take over the bytes of a key costs as much as a short digest.
  const secretKey = createSecretKey(maskKey)
  return (bytes, start, end) => {
    const hmac = createHmac('sha256', secretKey)
    if (of === 'secret') hmac.update(bytes.subarray(start, end))
    else {
      hmac.update(IDENTITY_DOMAIN, 'latin1')
      if (normalizePlain(bytes, start, end)) hmac.update(bytes.subarray(start, end))
      else hmac.update(normalIdentity(bytes.toString('utf8', start, end)), 'utf8')
    }
    return start + bytes.write(hmac.digest('hex'), start, 'latin1')
  }
}

/** The normal form of an identity as files hold it: CSV has U+FFFD in place of NUL. */
export function filedIdentity(identity: string): string {
  return normalIdentity(identity).replaceAll('\0', '\ufffd')
}

/** Goes before an identity in its HMAC. A digest here never equals one in a column. */
const FORGOTTEN_DOMAIN = 'spillway forgotten identity: '

export function suppressionDigest(key: Uint8Array | KeyObject, identity: string): string {
  return createHmac('sha256', key)
    .update(FORGOTTEN_DOMAIN + filedIdentity(identity))
    .digest('hex')
}

/** Tells whether an identity is on the list; null: nobody is, and items need not be compared. */
export function suppression(list: SuppressList | null): ((identity: string) => boolean) | null {
  if (list === null || list.digests.length === 0) return null
  const key = createSecretKey(list.key)
  const digests = new Set(list.digests)
  return (identity) => digests.has(suppressionDigest(key, identity))
}
