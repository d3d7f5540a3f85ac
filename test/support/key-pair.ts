import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Writes a new key pair for signatures into a folder: `key.pem`, which its owner alone may read, and `pub.pem`. */
export function writeKeyPair(folder: string): void {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' })
  writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 })
  const pub = publicKey.export({ type: 'spki', format: 'pem' })
  writeFileSync(join(folder, 'pub.pem'), pub, { mode: 0o600 })
}
