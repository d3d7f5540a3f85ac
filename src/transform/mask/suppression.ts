import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { SuppressList } from '../../rows/index.ts'
import { normalIdentity } from './normal-form.ts'

/** The normal form of an identity as files hold it: CSV has U+FFFD in place of NUL. */
export function filedIdentity(identity: string): string {
  return normalIdentity(identity).replaceAll('\0', '\ufffd')
}

/** Goes before an identity in its HMAC. A digest here never equals one in a column. */
const DOMAIN = 'spillway forgotten identity: '

export function suppressionDigest(key: Uint8Array | KeyObject, identity: string): string {
  return createHmac('sha256', key)
    .update(DOMAIN + filedIdentity(identity))
    .digest('hex')
}

export class Suppression {
  readonly #key: KeyObject
  readonly #digests: ReadonlySet<string>

  private constructor({ key, digests }: SuppressList) {
    this.#key = createSecretKey(key)
    this.#digests = new Set(digests)
  }

  /** null: nobody is forgotten, and items need not be compared. */
  static of(list: SuppressList | null): Suppression | null {
    return list === null || list.digests.length === 0 ? null : new Suppression(list)
  }

  has(identity: string): boolean {
    return this.#digests.has(suppressionDigest(this.#key, identity))
  }
}
