import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { isAbsolute, resolve } from 'node:path'
import {
  AUTH_KEYS,
  type CatalogSettings,
  ExportError,
  IDENTITY_POLICIES,
  isHeaderText,
  keySet,
  learnSecret,
  type Pipeline,
  requireSet,
  rulesOf,
  SECRET_POLICIES,
} from '../../core/index.ts'
import { STORES } from '../stores.ts'
import { readText } from '../values/read-text.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The content of a file, by its absolute path; else the value of a variable, or the content of the file that `<name>_FILE`
 * names; null: there is neither.
 * @throws ExportError 'config' when the file cannot be read, or is empty
 */
export async function readSecret(name: string, env: Environment): Promise<string | null> {
  const isFile = isAbsolute(name)
  const value = isFile ? '' : variable(name, env)
  // A variable that is set overrides the file, even if it has only a line break.
  const file = isFile ? name : value === '' ? variable(`${name}_FILE`, env) : ''
  if (file === '') return learned(withoutLineBreak(value)) || null
  const read = await readText(file)
  const secret = read.ok ? withoutLineBreak(read.text) : ''
  if (secret !== '') return learned(secret)
  throw new ExportError({
    kind: 'config',
    what: `The file ${isFile ? `${file} with the token or key` : `that ${name}_FILE names`} ${read.ok ? 'is empty' : read.reason}`,
    where: file,
    next: isFile ? 'Put it there, alone.' : `Correct ${name}_FILE, or set ${name} itself.`,
  })
}

/** @throws ExportError 'config' when it is not set */
export async function requireSecret(name: string, env: Environment): Promise<string> {
  return requireSet(name, await readSecret(name, env), '')
}

/** A token or key, exactly as issued. @throws ExportError 'config' when it is not set, or is none; never shows it */
export async function requireCredential(name: string, env: Environment): Promise<string> {
  const credential = await requireSecret(name, env)
  const fault = !isHeaderText(credential)
    ? 'cannot be sent: there is a line break, another control character or a character outside ASCII in it'
    : AROUND.test(credential.trim())
      ? 'is in quotes, or begins with Bearer or Authorization, which is added when it is sent'
      : null
  if (fault === null) return credential
  throw new ExportError({
    kind: 'config',
    what: `what ${name} holds ${fault}`,
    where: '',
    next: 'Set it to the token or key alone.',
  })
}

/** What is copied with a token by mistake. */
const AROUND = /^(?:(["'`]).*\1$|Bearer\s|Authorization:)/i

/** Editors, `echo` and command substitution on Windows leave a line break. */
function withoutLineBreak(text: string): string {
  return text.replace(/(?:\r?\n|\r)$/, '')
}

/** Empty: it is not set. Inherited properties are no variables. A `.env` file of Windows leaves a carriage return. */
export function variable(name: string, env: Environment): string {
  return Object.hasOwn(env, name) ? (env[name] ?? '').replace(/\r$/, '') : ''
}

/** Registers a secret, so that no message repeats it; the empty text is none. */
function learned(secret: string): string {
  learnSecret(secret)
  // Clients of object storage trim their secrets.
  if (secret !== secret.trim()) learnSecret(secret.trim())
  return secret
}

/** Opens an encrypted signing key. */
const SIGNING_PASSPHRASE = 'SPILLWAY_SIGNING_PASSPHRASE'

/** Variables that are read where no key of the file names others. */
export const USUAL_SECRETS: readonly string[] = [
  'SPILLWAY_TOKEN',
  'SPILLWAY_API_KEY',
  'SPILLWAY_MASK_KEY',
  SIGNING_PASSPHRASE,
  ...Object.values(STORES).flatMap(({ secrets }) => secrets),
]
const PROXIES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY']

/** Reads all secrets, also those that this run may not need: no message may repeat them. Skips what cannot be read. */
export async function learnSecrets(env: Environment, pipeline: Pipeline | null = null): Promise<void> {
  for (const name of PROXIES) learnProxyPassword(variable(name, env))
  for (const { secrets, secretPart } of Object.values(STORES)) {
    for (const name of secretPart === null ? [] : secrets)
      for (const [, part = ''] of variable(name, env).matchAll(secretPart!)) learnEncoded(part)
  }
  for (const name of new Set([...USUAL_SECRETS, ...(pipeline === null ? [] : secretVariables(pipeline))])) {
    await readSecret(name, env).catch(() => {})
  }
}

/** Variables with secrets that a pipeline names, whether it needs them or not. */
function secretVariables(pipeline: Pipeline): readonly string[] {
  return [...requestSecrets(pipeline).map(({ name }) => name), pipeline.transform.maskKeyEnv]
}

/** The secrets that requests need: the variable of each, the key of the file that names it, and how it is read. */
export function requestSecrets(pipeline: Pipeline) {
  const { catalog } = pipeline.load
  const searched = pipeline.extract.queries.flatMap((query) =>
    query.type === 'secret' ? [query.secretEnv] : [],
  )
  return [
    {
      name: pipeline.service.auth.secretIn,
      key: keySet(pipeline, ...AUTH_KEYS, 'service'),
      read: requireCredential,
    },
    ...searched.map((name) => ({
      name,
      key: pipeline.secretKeys[name] ?? 'extract.queries',
      read: requireSecret,
    })),
    ...catalogVariables(catalog).map((name) => ({
      name,
      key: 'load.catalog',
      read: catalog?.auth?.kind === 'token' ? requireCredential : requireSecret,
    })),
  ]
}

function learnProxyPassword(address: string): void {
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null) return
  // A token may be the user name.
  learnEncoded(url.password || url.username)
}

/** A secret that may be percent-encoded. */
function learnEncoded(secret: string): void {
  learnSecret(secret)
  try {
    learnSecret(decodeURIComponent(secret))
  } catch {
    // It is not percent-encoded.
  }
}

/**
 * The key of the `hmac` policies; null: none needs one. Line breaks at its end go: editors and Windows add some.
 * @throws ExportError 'config' when it is missing, shorter than 32 bytes, or nothing but blanks
 */
export async function readMaskKey(pipeline: Pipeline, env: Environment): Promise<Uint8Array | null> {
  return needsMaskKey(pipeline) ? readKeyOf(pipeline.transform.maskKeyEnv, env, pipeline.file) : null
}

/** The key of a variable. @throws ExportError as {@link readMaskKey} */
export async function readKeyOf(maskKeyEnv: string, env: Environment, where: string): Promise<Uint8Array> {
  const text = await readSecret(maskKeyEnv, env)
  const key = new TextEncoder().encode(text?.replace(/(?<![\r\n])[\r\n]+$/, '') ?? '')
  const fault = maskKeyFault(key)
  if (fault === null) return key
  throw new ExportError({
    kind: 'config',
    what:
      text === null
        ? `The masking policy hmac needs a key, and ${maskKeyEnv} is not set, or empty`
        : `The masking key in ${maskKeyEnv} ${fault}`,
    where,
    next: `Set ${maskKeyEnv}, or ${maskKeyEnv}_FILE to a file with it, to at least ${MIN_MASK_KEY_BYTES} bytes (openssl rand -hex 32 makes one), and keep it: another key gives other hashes.`,
  })
}

/** An Ed25519 private key in PEM; {@link SIGNING_PASSPHRASE} opens it. @throws ExportError 'config' when it is none */
export async function readSigningKey(
  file: string,
  { env, cwd }: { readonly env: Environment; readonly cwd: string },
): Promise<KeyObject> {
  const text = await readPem(file, cwd)
  for (const [, body = ''] of text.matchAll(PRIVATE)) body.split(/\s+/).forEach(learnSecret)
  if (!ENCRYPTED.test(text))
    return ed25519From(file, () => createPrivateKey(text), 'holds no private key in PEM', HOW_TO_MAKE)
  const passphrase = requireSet(SIGNING_PASSPHRASE, await readSecret(SIGNING_PASSPHRASE, env), file)
  const how = `cannot be opened with ${SIGNING_PASSPHRASE}`
  const open = () => createPrivateKey({ key: text, passphrase })
  return ed25519From(file, open, how, 'Set the passphrase of this key.')
}

/** An Ed25519 public key in PEM. @throws ExportError 'config' when it is another; a private one is not needed here */
export async function readVerifyingKey(file: string, { cwd }: { readonly cwd: string }): Promise<KeyObject> {
  const text = await readPem(file, cwd)
  if (text.includes('PRIVATE KEY-----')) throw unusable(file, 'holds a private key', HOW_TO_PUBLISH)
  return ed25519From(file, () => createPublicKey(text), 'holds no public key in PEM', HOW_TO_PUBLISH)
}

const HOW_TO_MAKE = '`openssl genpkey -algorithm ed25519 -out key.pem` makes one.'
const HOW_TO_PUBLISH =
  'Give the public one: `openssl pkey -in key.pem -pubout -out pub.pem` makes it of the private one.'
const PRIVATE = /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----([^-]*)-----END/g
const ENCRYPTED = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m

async function readPem(file: string, cwd: string): Promise<string> {
  const read = await readText(resolve(cwd, file))
  if (!read.ok) throw unusable(file, read.reason, 'Correct --key.')
  return read.text
}

function ed25519From(file: string, make: () => KeyObject, how: string, next: string): KeyObject {
  let key: KeyObject
  try {
    key = make()
  } catch (cause) {
    throw unusable(file, how, next, cause)
  }
  if (key.asymmetricKeyType === 'ed25519') return key
  throw unusable(file, `holds a key of the kind ${key.asymmetricKeyType}, not ed25519`, HOW_TO_MAKE)
}

function unusable(file: string, how: string, next: string, cause?: unknown): ExportError {
  return new ExportError({ kind: 'config', what: `The key file ${how}`, where: file, next, cause })
}

export function needsMaskKey({ extract, transform }: Pick<Pipeline, 'extract' | 'transform'>): boolean {
  const { secret, identity } = transform
  const isKeyed = SECRET_POLICIES[secret].isKeyed || IDENTITY_POLICIES[identity].isKeyed
  return isKeyed && rulesOf(extract.resource).holdsPeople
}

export function catalogVariables(catalog: CatalogSettings | null): readonly string[] {
  if (catalog === null || catalog.auth === null) return []
  const { auth } = catalog
  return auth.kind === 'token' ? [auth.tokenEnv] : [auth.clientIdEnv, auth.clientSecretEnv]
}

/** HMAC-SHA256 keys shorter than the digest weaken it (RFC 2104, section 3). */
const MIN_MASK_KEY_BYTES = 32

/** What is wrong with a mask key, as the predicate of a sentence about the key; null: the key is valid. */
export function maskKeyFault(key: Uint8Array): string | null {
  if (key.byteLength < MIN_MASK_KEY_BYTES)
    return `has ${key.byteLength} ${key.byteLength === 1 ? 'byte' : 'bytes'}`
  return Buffer.from(key).toString('latin1').trim() === '' ? 'consists of blanks only' : null
}
