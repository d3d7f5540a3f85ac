import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { resolve } from 'node:path'
import { ExportError, learnSecret } from '../../core/index.ts'
import { readText } from '../values/read-text.ts'
import { type Environment, readSecret, SIGNING_PASSPHRASE } from './secrets.ts'

/**
 * Reads an Ed25519 private key in PEM; an encrypted one is opened with {@link SIGNING_PASSPHRASE}.
 * @throws ExportError 'config' when there is none, or one of another kind
 */
export async function readSigningKey(
  file: string,
  { env, cwd }: { readonly env: Environment; readonly cwd: string },
): Promise<KeyObject> {
  const text = await readPem(file, cwd)
  for (const [, body = ''] of text.matchAll(PRIVATE)) learnSecret(body.replaceAll(/\s/g, ''))
  if (!text.includes('PRIVATE KEY-----')) {
    const what = text.includes('PUBLIC KEY-----')
      ? 'a public key, which can not sign'
      : 'no private key in PEM'
    throw unusable(file, `holds ${what}`, `Give the private key; ${HOW_TO_MAKE}`)
  }
  const isEncrypted = ENCRYPTED.test(text)
  const passphrase = isEncrypted ? await readSecret(SIGNING_PASSPHRASE, env) : null
  if (isEncrypted && passphrase === null) {
    const next = `Set it, or ${SIGNING_PASSPHRASE}_FILE to a file that holds it.`
    throw unusable(file, `is encrypted, and ${SIGNING_PASSPHRASE} is not set`, next)
  }
  return requireEd25519(
    file,
    keyFrom(
      () => createPrivateKey({ key: text, ...(passphrase === null ? {} : { passphrase }) }),
      (cause) =>
        isEncrypted
          ? unusable(
              file,
              `can not be opened with ${SIGNING_PASSPHRASE}`,
              'Set the passphrase of this key.',
              cause,
            )
          : unusable(file, 'holds no private key that can be read', `In PEM; ${HOW_TO_MAKE}`, cause),
    ),
  )
}

/**
 * Reads an Ed25519 public key in PEM.
 * @throws ExportError 'config' when there is none, or one of another kind; a private key, which has no business where
 *   signatures are checked, is refused as well
 */
export async function readVerifyingKey(file: string, { cwd }: { readonly cwd: string }): Promise<KeyObject> {
  const text = await readPem(file, cwd)
  if (text.includes('PRIVATE KEY-----')) throw unusable(file, 'holds a private key', HOW_TO_PUBLISH)
  return requireEd25519(
    file,
    keyFrom(
      () => createPublicKey(text),
      (cause) => unusable(file, 'holds no public key in PEM', HOW_TO_PUBLISH, cause),
    ),
  )
}

const HOW_TO_MAKE = '`openssl genpkey -algorithm ed25519 -out key.pem` makes one.'
const HOW_TO_PUBLISH =
  'Give the public one: `openssl pkey -in key.pem -pubout -out pub.pem` makes it of the private one.'

const PRIVATE = /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----([^-]*)-----END/g
const ENCRYPTED = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m

// The largest keys that there are have some kilobytes.
const MAX_LENGTH = 64 * 1024

async function readPem(file: string, cwd: string): Promise<string> {
  const read = await readText(resolve(cwd, file))
  if (!read.ok) throw unusable(file, read.reason, 'Correct --key.')
  if (read.text.length > MAX_LENGTH) throw unusable(file, 'is larger than any key', 'Correct --key.')
  return read.text
}

function keyFrom(make: () => KeyObject, refusal: (cause: unknown) => ExportError): KeyObject {
  try {
    return make()
  } catch (error) {
    throw refusal(error)
  }
}

function requireEd25519(file: string, key: KeyObject): KeyObject {
  if (key.asymmetricKeyType === 'ed25519') return key
  throw unusable(file, `holds a key of the kind ${key.asymmetricKeyType}, not ed25519`, HOW_TO_MAKE)
}

function unusable(file: string, how: string, next: string, cause?: unknown): ExportError {
  return new ExportError('config', `The key file ${how}`, file, next, { cause })
}
