import { randomBytes } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ExportError } from '../core/index.ts'

/**
 * Writes a report under its name in one step, for its owner alone; a file of that name is replaced.
 * @returns the file's path
 * @throws ExportError `storage`
 */
export async function saveReport(folder: string, name: string, text: string): Promise<string> {
  const path = join(folder, name)
  const unfinished = join(folder, `.${name}.${randomBytes(6).toString('hex')}`)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(unfinished, text, { flag: 'wx', mode: 0o600 })
    await rename(unfinished, path)
    return path
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {})
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    const next = 'Choose a folder that can be written, or free some space.'
    throw new ExportError('storage', `The report can not be written: ${code}`, path, next, { cause: error })
  }
}
