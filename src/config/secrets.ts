import { ExportError, MIN_MASK_KEY_BYTES, maskKeyFault, type Pipeline } from '../core/index.ts'
import { readText } from './read-text.ts'

export type Environment = Readonly<Record<string, string | undefined>>

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
