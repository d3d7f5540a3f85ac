import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { codeOf } from '../../core/index.ts'

/** Large enough for hundreds of thousands of domains, small enough to hold in memory. */
const MAX_BYTES = 16 * 1024 * 1024

type ReadText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string }

/** At most 16 MB, without its byte order mark. No pipe: reading one cannot be interrupted. `reason` ends a sentence. */
export async function readText(path: string): Promise<ReadText> {
  let handle: FileHandle | null = null
  try {
    // Without O_NONBLOCK, opening a pipe waits for its other end. Windows has no such flag.
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const found = await handle.stat()
    if (found.isDirectory()) return { ok: false, reason: 'is a directory, not a file' }
    if (!found.isFile()) return { ok: false, reason: 'is no regular file' }
    if (found.size > MAX_BYTES) return { ok: false, reason: 'is larger than 16 MB' }
    const bytes = await handle.readFile()
    return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch (error) {
    const code = codeOf(error)
    return { ok: false, reason: REASONS[code] ?? `cannot be read${code === '' ? '' : ` (${code})`}` }
  } finally {
    await handle?.close()
  }
}

const DENIED = 'cannot be read: permission denied'
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EACCES: DENIED,
  EPERM: DENIED,
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is not UTF-8 text',
}
