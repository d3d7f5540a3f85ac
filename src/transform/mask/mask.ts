import { createHmac, createSecretKey, hash } from 'node:crypto'
import {
  ExportError,
  IDENTITY_POLICIES,
  type IdentityPolicy,
  SECRET_POLICIES,
  type SecretPolicy,
} from '../../core/index.ts'

/** Characters of a digest: SHA-256 in hex. */
export const DIGEST_LENGTH = 64

/** Replaces a value that may not be shown. */
export const REDACTED = '[REDACTED]'

/**
 * Rewrites the UTF-8 text at [start, end) in place and returns its new end. The bytes must have
 * {@link MASK_ROOM} of room from `start` on. Bytes rather than strings, because most values go from the
 * response to the record batch without ever becoming a string.
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

/** @throws ExportError 'config' when a policy is none that is known, or needs a key and there is none */
export function masksOf({ secret, identity, maskKey }: MaskPolicies): Masks {
  return { secret: secretMask(secret, maskKey), identity: identityMask(identity, maskKey) }
}

/** The same masks for a JavaScript string. Lone surrogates become U+FFFD first. */
export function maskText(mask: Mask | null, text: string): string {
  if (mask === null) return text.toWellFormed()
  const bytes = Buffer.alloc(3 * text.length + MASK_ROOM)
  const end = mask(bytes, 0, bytes.write(text))
  return bytes.toString('utf8', 0, end)
}

function secretMask(policy: SecretPolicy, maskKey: Uint8Array | null): Mask | null {
  switch (policy) {
    case 'redact':
    case 'drop':
      return redact
    case 'partial':
      return partial
    case 'hmac':
      return digestMask(maskKey, '')
    case 'plaintext':
      return null
    default:
      throw unknownPolicy('secret', policy)
  }
}

function identityMask(policy: IdentityPolicy, maskKey: Uint8Array | null): Mask | null {
  switch (policy) {
    case 'keep':
      return null
    case 'hmac':
      return digestMask(maskKey, IDENTITY_DOMAIN)
    case 'drop':
      return redact
    default:
      throw unknownPolicy('identity', policy)
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

/**
 * Goes before an identity in its HMAC, so that the digests of secrets and of identities never compare: a credential
 * whose password is its address would show otherwise.
 */
const IDENTITY_DOMAIN = 'identity:'

/** Types keep other policies out; what comes from elsewhere is stopped here, whatever it is. */
function unknownPolicy(key: 'secret' | 'identity', _policy: never): ExportError {
  return new ExportError(
    'config',
    `transform.${key} is no policy that is known`,
    'transform',
    `Choose ${(key === 'secret' ? SECRET_POLICIES : IDENTITY_POLICIES).join(', ')}.`,
  )
}

function digestMask(maskKey: Uint8Array | null, domain: string): Mask {
  if (maskKey === null) {
    throw new ExportError(
      'config',
      'An hmac policy needs a mask key and there is none',
      'transform',
      'Set the variable that transform.mask_key_env names to at least 32 bytes.',
    )
  }
  return keyedDigest(maskKey, domain)
}

/** Writes a digest over the text that begins at `start`, and returns where it ends. */
type KeyedDigest = (bytes: Buffer, start: number, end: number) => number

/** Bytes of a block of SHA-256. */
const BLOCK_BYTES = 64
/** Longer texts are rare, and not worth a copy. */
const SHORT_BYTES = 4096

/**
 * HMAC-SHA256 in hex, in place of the text. Short texts take the two hashes of RFC 2104, each of them one call:
 * `createHmac` makes an object and looks SHA-256 up for each text, which takes longer than the hashes.
 * @param prefix goes before every text, in ASCII: what has different ones never compares
 */
export function keyedDigest(key: Uint8Array, prefix: string): KeyedDigest {
  // Made once: to take over the bytes of a key costs as much as a short digest.
  const secretKey = createSecretKey(key)
  const inner = keyBlock(key, 0x36, prefix.length + SHORT_BYTES)
  const outer = keyBlock(key, 0x5c, DIGEST_LENGTH / 2)
  const at = BLOCK_BYTES + inner.write(prefix, BLOCK_BYTES, 'latin1')
  return (bytes, start, end) => {
    if (end - start > SHORT_BYTES) {
      const hmac = createHmac('sha256', secretKey).update(prefix, 'latin1').update(bytes.subarray(start, end))
      return start + bytes.write(hmac.digest('hex'), start, 'latin1')
    }
    const innerEnd = at + bytes.copy(inner, at, start, end)
    outer.write(hash('sha256', inner.subarray(0, innerEnd), 'binary'), BLOCK_BYTES, 'latin1')
    return start + bytes.write(hash('sha256', outer, 'hex'), start, 'latin1')
  }
}

/** A block of the key, a longer one hashed, combined with a constant; then room for what is hashed with it. */
function keyBlock(key: Uint8Array, constant: number, room: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES + room)
  block.set(key.byteLength > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key)
  for (let i = 0; i < BLOCK_BYTES; i++) block[i]! ^= constant
  return block
}
