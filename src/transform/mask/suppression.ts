import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { SuppressList } from '../../rows/index.ts'

/**
 * The form in which identities are compared when people are forgotten: without white space at its ends, in Unicode
 * normalization form C, in lower case by Unicode's default mapping of any language. Characters that a file cannot hold
 * (NUL in CSV, lone surrogates) are U+FFFD in it, so they are here.
 */
export function foldIdentity(identity: string): string {
  // Nearly all are of this form, in which only the case matters.
  if (PLAIN.test(identity)) return identity.toLowerCase()
  return identity.toWellFormed().replaceAll('\0', '\ufffd').trim().normalize('NFC').toLowerCase()
}

const PLAIN = /^[\x21-\x7e]*$/

/** Goes before an identity in its HMAC. A digest here never equals one in a column. */
const DOMAIN = 'spillway forgotten identity: '

/** The digest by which a forgotten identity is recognized, in hex. */
export function suppressionDigest(key: Uint8Array | KeyObject, identity: string): string {
  return createHmac('sha256', key)
    .update(DOMAIN + foldIdentity(identity))
    .digest('hex')
}

/** The people whose items are dropped. */
export class Suppression {
  readonly #lists: readonly { readonly key: KeyObject; readonly digests: ReadonlySet<string> }[]

  private constructor(lists: readonly SuppressList[]) {
    this.#lists = lists.map(({ key, digests }) => ({ key: createSecretKey(key), digests: new Set(digests) }))
  }

  /** null: nobody is forgotten, and items need not be compared. */
  static of(lists: readonly SuppressList[]): Suppression | null {
    return lists.every(({ digests }) => digests.length === 0) ? null : new Suppression(lists)
  }

  has(identity: string): boolean {
    return this.#lists.some(({ key, digests }) => digests.has(suppressionDigest(key, identity)))
  }
}
