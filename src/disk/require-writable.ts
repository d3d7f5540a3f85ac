import { constants } from 'node:fs'
import { access, lstat, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ExportError, hasCode, isExportError } from '../core/index.ts'
import { fsyncFolder } from './open-file.ts'
import { nullIfAbsent, storageError } from './storage-error.ts'

/**
 * Checks a folder, or the nearest one above it that exists. Makes nothing. @param where names the folder in messages
 * @throws ExportError `config` when nothing can ever be written there, else `storage`, as the first write would
 */
export async function requireWritable(folder: string, where = folder): Promise<void> {
  try {
    for (let path = folder; ; path = dirname(path)) {
      const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' && path !== dirname(path)) return null
        throw error
      })
      if (found === null) {
        const isLink = (await lstat(path).catch(nullIfAbsent))?.isSymbolicLink() === true
        if (isLink)
          throw new ExportError({
            kind: 'config',
            what: 'There is a symbolic link to a folder that is not there',
            where: path,
            next: 'Make that folder, mount it, or correct load.path.',
          })
        continue
      }
      if (!found.isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' })
      await access(path, constants.W_OK | constants.X_OK)
      // Not every file system can: then no file in it would ever be durable.
      return await fsyncFolder(path)
    }
  } catch (error) {
    throw asSetting(error, storageError(error, where))
  }
}

/** Before anything is changed, these mean that the setting is wrong, not the disk. */
const SETTINGS = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST']

function asSetting(error: unknown, translated: unknown): unknown {
  if (!isExportError(translated) || !hasCode(error, ...SETTINGS)) return translated
  const { what, where, next } = translated
  return new ExportError({ kind: 'config', what, where, next, cause: error })
}
