import type { IdentityPolicy, SecretPolicy } from '../core/index.ts'
import { ExportError } from '../core/index.ts'
import { DIGEST_LENGTH, keyedDigest } from './keyed-digest.ts'

/** What stands in for a value that may not be shown. */
export const REDACTED = '[REDACTED]'

/**
 * Rewrites the UTF-8 text at [start, end) in place and returns its new end. The bytes must have
 * {@link MASK_ROOM} of room from `start` on. Bytes rather than strings, because most values go from the
 * answer to the frame without ever becoming a string.
 */
export type Mask = (bytes: Buffer, start: number, end: number) => number

/** Bytes that the longest mask can need. */
export const MASK_ROOM = DIGEST_LENGTH

/** The policies of a plan, as far as values are concerned. */
export type MaskPolicies = {
  readonly secret: SecretPolicy
  readonly identity: IdentityPolicy
  readonly maskKey: Uint8Array | null
}

/** The masks of a plan; null: the value stays as it is. Under `drop`, what cannot be left out is redacted. */
export type Masks = { readonly secret: Mask | null; readonly identity: Mask | null }

/** @throws ExportError 'config' when a policy needs a key and there is none */
export function masksOf({ secret, identity, maskKey }: MaskPolicies): Masks {
  const digest = secret === 'hmac' || identity === 'hmac' ? digestMask(maskKey) : redact
  return { secret: secretMask(secret, digest), identity: identityMask(identity, digest) }
}

/** The same masks for a JavaScript string. Lone surrogates become U+FFFD first. */
export function maskText(mask: Mask | null, text: string): string {
  if (mask === null) return text.toWellFormed()
  const bytes = Buffer.alloc(3 * text.length + MASK_ROOM)
  const end = mask(bytes, 0, bytes.write(text))
  return bytes.toString('utf8', 0, end)
}

function secretMask(policy: SecretPolicy, digest: Mask): Mask | null {
  switch (policy) {
    case 'redact':
    case 'drop':
      return redact
    case 'partial':
      return partial
    case 'hmac':
      return digest
    case 'plaintext':
      return null
  }
}

function identityMask(policy: IdentityPolicy, digest: Mask): Mask | null {
  switch (policy) {
    case 'keep':
      return null
    case 'hmac':
      return digest
    case 'drop':
      return redact
  }
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

function digestMask(maskKey: Uint8Array | null): Mask {
  if (maskKey === null) {
    throw new ExportError(
      'config',
      'An hmac policy needs a mask key and there is none',
      'transform',
      'Set the variable that transform.mask_key_env names to at least 32 bytes.',
    )
  }
  return keyedDigest(maskKey)
}
