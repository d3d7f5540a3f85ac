import { ExportError, type Pipeline } from '../core/index.ts'
import { readText } from './read-text.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** HMAC-SHA256 keys shorter than the digest weaken it (RFC 2104, section 3). */
const MIN_KEY_BYTES = 32

/**
 * A secret from the environment: the variable's value, or else the content of the file that `<name>_FILE`
 * names, without its final end of line. null when neither is there, or what is there is empty.
 * @throws ExportError 'config' when the file cannot be read
 */
export async function readSecret(name: string, env: Environment): Promise<string | null> {
  const value = env[name]
  if (value !== undefined && value !== '') return value
  const file = env[`${name}_FILE`]
  if (file === undefined || file === '') return null
  const read = await readText(file)
  if (!read.ok) {
    throw new ExportError(
      'config',
      `The file that ${name}_FILE names ${read.reason}`,
      file,
      `Correct ${name}_FILE, or set ${name} itself.`,
    )
  }
  return read.text.replace(/\r?\n$/, '') || null
}

/**
 * The key of the `hmac` policies as bytes; null where no policy needs one.
 * @throws ExportError 'config' when it is missing or shorter than 32 bytes
 */
export async function readMaskKey(pipeline: Pipeline, env: Environment): Promise<Uint8Array | null> {
  const { secret, identity, maskKeyEnv } = pipeline.transform
  if (pipeline.extract.resource === 'reports' || (secret !== 'hmac' && identity !== 'hmac')) return null
  const text = await readSecret(maskKeyEnv, env)
  const key = new TextEncoder().encode(text ?? '')
  if (key.byteLength >= MIN_KEY_BYTES) return key
  throw new ExportError(
    'config',
    text === null
      ? `The masking policy hmac needs a key, and ${maskKeyEnv} is not set`
      : `The masking key in ${maskKeyEnv} has ${key.byteLength} bytes`,
    pipeline.file,
    `Set ${maskKeyEnv}, or ${maskKeyEnv}_FILE to a file with it, to at least ${MIN_KEY_BYTES} bytes (openssl rand -hex 32 makes one), and keep it: another key gives other hashes.`,
  )
}
