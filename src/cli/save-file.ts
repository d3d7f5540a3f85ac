import { randomBytes } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ExportError } from '../core/index.ts'

/**
 * Writes a file under its name in one step, for its owner alone; a file of that name is replaced.
 * @param what for the message when it can't be: `The report`
 * @throws ExportError `storage`
 */
export async function saveFile(path: string, content: string | Uint8Array, what: string): Promise<void> {
  const unfinished = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`)
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(unfinished, content, { flag: 'wx', mode: 0o600, flush: true })
    await rename(unfinished, path)
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {})
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    const next = 'Choose a folder that can be written, or free some space.'
    throw new ExportError('storage', `${what} can not be written: ${code}`, path, next, { cause: error })
  }
}
