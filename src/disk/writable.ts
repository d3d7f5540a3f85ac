import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { storageError } from './storage-error.ts'

/**
 * Looks whether files can be made below a folder: there, or in the nearest one above it that is there. Makes nothing.
 * @throws ExportError `storage`, as the first write would
 */
export async function requireWritable(folder: string): Promise<void> {
  try {
    for (let path = folder; ; path = dirname(path)) {
      const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' && path !== dirname(path)) return null
        throw error
      })
      if (found === null) continue
      if (!found.isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' })
      return await access(path, constants.W_OK | constants.X_OK)
    }
  } catch (error) {
    throw storageError(error, folder)
  }
}
