import { chownSync, fchownSync, fstatSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { ExportError, hasCode } from '../core/index.ts'
import { unlessAbsent } from './storage-error.ts'

/** A user, and a group of theirs. */
export type FileOwner = { readonly uid: number; readonly gid: number }

/**
 * Whom files of a data set are given to: root gives them to the user that the data set belongs to, who could not read
 * them otherwise. null: they stay with who makes them.
 */
export function fileOwner(root: string): FileOwner | null {
  if (process.getuid?.() !== 0) return null
  const folders = [root, join(root, '_state')].map((folder) => unlessAbsent(() => statSync(folder)))
  return folders.find((found) => found !== null && found.uid !== 0) ?? null
}

/** @throws ExportError `config` where root may not give files away, as on some network file systems */
export function giveFile(file: number, owner: FileOwner | null): void {
  give(
    owner,
    () => fstatSync(file),
    (uid, gid) => fchownSync(file, uid, gid),
  )
}

export function giveFolder(full: string, owner: FileOwner | null): void {
  give(
    owner,
    () => statSync(full),
    (uid, gid) => chownSync(full, uid, gid),
  )
}

function give(owner: FileOwner | null, stat: () => Stats, chown: (uid: number, gid: number) => void): void {
  if (owner === null || stat().uid === owner.uid) return
  try {
    chown(owner.uid, owner.gid)
  } catch (error) {
    if (!hasCode(error, 'EPERM', 'EINVAL')) throw error
    throw new ExportError({
      kind: 'config',
      what: 'The data set belongs to another user, whom root cannot give files to here',
      where: '.',
      next: `Run the command as that user (id ${owner.uid}).`,
      cause: error,
    })
  }
}
