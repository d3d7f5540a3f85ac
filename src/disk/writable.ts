import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ExportError, isExportError } from '../core/index.ts'
import { storageError } from './storage-error.ts'

/**
 * Looks whether files can be made below a folder: there, or in the nearest one above it that is there. Makes nothing.
 * @param where names the folder in messages
 * @throws ExportError `config` when the folder is one where nothing can ever be written, else `storage`, as the first write
 *   would
 */
export async function requireWritable(folder: string, where = folder): Promise<void> {
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
    throw asSetting(error, storageError(error, where))
  }
}

/** Found before anything is changed, these are a matter of what was asked for and not of the disk. */
const SETTINGS: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST'])

function asSetting(error: unknown, told: unknown): unknown {
  if (!isExportError(told) || !(error instanceof Error && 'code' in error && SETTINGS.has(error.code)))
    return told
  const { what, where, next } = told
  return new ExportError('config', what, where, next, { cause: error })
}
