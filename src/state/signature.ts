import { createHash, type KeyObject, sign, verify } from 'node:crypto'

export const SIGNATURE_PATH = '_manifest.sig'

/** Length of an Ed25519 signature, which stands in its file as it is. */
export const SIGNATURE_BYTES = 64

/** Ed25519 over the manifest's bytes, by RFC 8032 without a prehash: what `openssl pkeyutl -rawin` checks. */
export function signatureOf(manifest: Uint8Array, privateKey: KeyObject): Uint8Array {
  return sign(null, manifest, privateKey)
}

/** Whether a signature is one of this manifest, under this key. */
export function fitsManifest(signature: Uint8Array, manifest: Uint8Array, publicKey: KeyObject): boolean {
  return signature.byteLength === SIGNATURE_BYTES && verify(null, manifest, publicKey, signature)
}

/** SHA-256 in hex of a public key in DER: `openssl pkey -pubin -in pub.pem -outform DER | sha256sum`. */
export function keyDigest(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}
