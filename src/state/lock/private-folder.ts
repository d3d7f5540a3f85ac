import { mkdtempSync, writeFileSync } from 'node:fs'
import { lstat, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describeOwner, lockFileText, ownerStatus, parseLockFile } from './lock-file.ts'

/** A file in each private folder of a process: its owner, in the form of lock files. */
const OWNER = 'owner'

// Processes of another boot, machine or container cannot be seen; none needs its folder as long as this.
const FOREIGN_MS = 7 * 24 * 60 * 60 * 1000

/** Creates a folder of this process, in one go: a kill between the steps would leave one that belongs to nobody. */
export function createPrivateFolder(prefix: string): string {
  const owner = lockFileText(describeOwner(new Date()))
  const folder = mkdtempSync(prefix)
  writeFileSync(join(folder, OWNER), owner, { mode: 0o600 })
  return folder
}

/** Removes the private folders of killed processes. @param isPrivate by a folder's name @returns the others */
export async function sweepPrivateFolders(
  parent: string,
  isPrivate: (name: string) => boolean,
): Promise<readonly string[]> {
  const left: string[] = []
  for (const name of await readdir(parent).catch(() => [])) {
    if (!isPrivate(name)) continue
    const folder = join(parent, name)
    // A folder that cannot be read or removed belongs to another user, or another process removes it.
    const isGone =
      (await isAbandoned(folder).catch(() => false)) &&
      (await rm(folder, { recursive: true, force: true }).then(
        () => true,
        () => false,
      ))
    if (!isGone) left.push(folder)
  }
  return left
}

/** Whether its process has ended. One that cannot be known, or is not marked yet, may be alive for a week. */
async function isAbandoned(folder: string): Promise<boolean> {
  const { uid, mtimeMs } = await lstat(folder)
  if (process.getuid !== undefined && uid !== process.getuid()) return false
  const owner = join(folder, OWNER)
  const status = await readFile(owner).then(
    (bytes) => ownerStatus(parseLockFile(bytes, owner)),
    () => 'unknown' as const,
  )
  return status === 'dead' || (status === 'unknown' && Date.now() - mtimeMs > FOREIGN_MS)
}
