import {
  ExportError,
  isHeaderText,
  learnSecret,
  MIN_MASK_KEY_BYTES,
  maskKeyFault,
  type Pipeline,
} from '../../core/index.ts'
import { readText } from '../values/read-text.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * A secret from the environment: the variable's value, or else the content of the file that `<name>_FILE`
 * names; either without a line break at its end. null when neither is there, or what is there is empty.
 * @throws ExportError 'config' when the file cannot be read
 */
export async function readSecret(name: string, env: Environment): Promise<string | null> {
  const value = variable(name, env)
  if (value !== '') {
    const secret = withoutLineBreak(value)
    // What is set is meant to count, also where nothing is left of it.
    return secret === '' ? null : learned(secret)
  }
  const file = variable(`${name}_FILE`, env)
  if (file === '') return null
  const read = await readText(file)
  if (!read.ok) {
    throw new ExportError(
      'config',
      `The file that ${name}_FILE names ${read.reason}`,
      file,
      `Correct ${name}_FILE, or set ${name} itself.`,
    )
  }
  const secret = withoutLineBreak(read.text)
  return secret === '' ? null : learned(secret)
}

/** @throws ExportError 'config' when it is not set */
export async function requireSecret(name: string, env: Environment): Promise<string> {
  const secret = await readSecret(name, env)
  if (secret !== null) return secret
  const next = `Set it, or ${name}_FILE to a file that holds it.`
  throw new ExportError('config', `the environment variable ${name} is not set`, '', next)
}

/**
 * A token or API key, which has to be what the service gave and nothing around it.
 * @throws ExportError 'config' when it is not set or can't be one; never shows it
 */
export async function requireCredential(name: string, env: Environment): Promise<string> {
  const credential = requireSendable(name, await requireSecret(name, env))
  requireAlone(name, credential)
  return credential
}

function requireSendable(name: string, token: string): string {
  if (isHeaderText(token)) return token
  const what = `what ${name} holds can not be sent: there is a line break, another control character or a character outside ASCII in it`
  throw new ExportError('config', what, '', 'Set it to the token or key alone.')
}

/** What people copy along with a token. */
const AROUND: readonly (readonly [RegExp, string])[] = [
  [/^(["'`]).*\1$/, 'stands in quotes'],
  [/^Bearer\s/i, 'begins with Bearer, which is added when it is sent'],
  [/^Authorization:/i, 'is a whole header'],
]

function requireAlone(name: string, token: string): void {
  for (const [pattern, fault] of AROUND) {
    if (!pattern.test(token.trim())) continue
    throw new ExportError('config', `what ${name} holds ${fault}`, '', 'Set it to the token or key alone.')
  }
}

/** Editors, `echo` and command substitution on Windows leave one behind. */
function withoutLineBreak(text: string): string {
  return text.replace(/(?:\r?\n|\r)$/, '')
}

/** The value of a variable; empty where it is not set. What every object has by nature is no variable. */
export function variable(name: string, env: Environment): string {
  return Object.hasOwn(env, name) ? (env[name] ?? '') : ''
}

/** Whatever is read here is known from then on as something that no message may repeat. */
function learned(secret: string): string {
  learnSecret(secret)
  // Those of object storage are used without the blanks around them.
  if (secret !== secret.trim()) learnSecret(secret.trim())
  return secret
}

/** Opens an encrypted signing key. */
export const SIGNING_PASSPHRASE = 'SPILLWAY_SIGNING_PASSPHRASE'

const USUAL_SECRETS = [
  'SPILLWAY_TOKEN',
  'SPILLWAY_API_KEY',
  'SPILLWAY_MASK_KEY',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  SIGNING_PASSPHRASE,
]
const PROXIES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY']

/**
 * Reads everything secret that the environment holds for a pipeline, also what this run may not need, so that no
 * message repeats it. What can't be read is no trouble here; it is where it is needed.
 */
export async function learnSecrets(env: Environment, pipeline: Pipeline | null = null): Promise<void> {
  for (const name of PROXIES) learnProxyPassword(variable(name, env))
  for (const name of new Set([...USUAL_SECRETS, ...(pipeline === null ? [] : secretVariables(pipeline))])) {
    await readSecret(name, env).catch(() => {})
  }
}

/** Variables with secrets that a pipeline speaks of, whether it needs them or not. */
export function secretVariables({ service: { auth }, extract, transform }: Pipeline): readonly string[] {
  return [
    auth.kind === 'token' ? auth.tokenEnv : auth.apiKeyEnv,
    transform.maskKeyEnv,
    ...extract.queries.flatMap((query) => (query.type === 'secret' ? [query.secretEnv] : [])),
  ]
}

function learnProxyPassword(address: string): void {
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null) return
  // A token may stand alone in the place of the user.
  const secret = url.password || url.username
  learnSecret(secret)
  try {
    learnSecret(decodeURIComponent(secret))
  } catch {
    // Not percent-encoded: as it is will do.
  }
}

/**
 * The key of the `hmac` policies as bytes; null where no policy needs one. Line breaks at its end are no part of it:
 * editors, `echo` and files made on Windows leave one or more behind, and another key gives other digests.
 * @throws ExportError 'config' when it is missing, shorter than 32 bytes, or nothing but blanks
 */
export async function readMaskKey(pipeline: Pipeline, env: Environment): Promise<Uint8Array | null> {
  const { secret, identity, maskKeyEnv } = pipeline.transform
  if (pipeline.extract.resource === 'reports' || (secret !== 'hmac' && identity !== 'hmac')) return null
  const text = await readSecret(maskKeyEnv, env)
  const key = new TextEncoder().encode(withoutFinalBreaks(text ?? ''))
  const fault = maskKeyFault(key)
  if (fault === null) return key
  throw new ExportError(
    'config',
    text === null
      ? `The masking policy hmac needs a key, and ${maskKeyEnv} is not set`
      : `The masking key in ${maskKeyEnv} ${fault}`,
    pipeline.file,
    `Set ${maskKeyEnv}, or ${maskKeyEnv}_FILE to a file with it, to at least ${MIN_MASK_KEY_BYTES} bytes (openssl rand -hex 32 makes one), and keep it: another key gives other hashes.`,
  )
}

function withoutFinalBreaks(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--
  return text.slice(0, end)
}
