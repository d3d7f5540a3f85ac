import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { lstat, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExportError } from '../../core/index.ts'
import { describeOwner, lockFileText, ownerStatus, parseLockFile } from './lock-file.ts'

const PREFIX = 'spillway-tmp-'

/** A file in each temporary folder: its owner, in the form of lock files. */
const OWNER = 'owner'

// Processes of another boot, machine or container cannot be seen; none needs its folder as long as this.
const FOREIGN_MS = 7 * 24 * 60 * 60 * 1000

/** A private folder. It is removed when the process ends, unless that is killed. */
export async function temporaryFolder() {
  await sweepTemporaryFolders()
  const path = createFolder()
  const removeNow = (): void => rmSync(path, { recursive: true, force: true })
  // Also if a second signal, or the time limit after the first, ends the process at once.
  process.once('exit', removeNow)
  return {
    path,
    async remove(): Promise<void> {
      await rm(path, { recursive: true, force: true })
      process.off('exit', removeNow)
    },
  }
}

/** In one go: a kill between the steps would leave a folder that belongs to nobody. */
function createFolder(): string {
  const owner = lockFileText(describeOwner(new Date()))
  try {
    const folder = mkdtempSync(join(tmpdir(), PREFIX))
    writeFileSync(join(folder, OWNER), owner, { mode: 0o600 })
    return folder
  } catch (cause) {
    throw new ExportError({
      kind: 'storage',
      what: 'No temporary folder can be created',
      where: tmpdir(),
      next: 'Set TMPDIR to a folder that can be written to and has room.',
      cause,
    })
  }
}

/** Removes the temporary folders of killed commands, which may hold rows. @returns those of others */
export async function sweepTemporaryFolders(): Promise<readonly string[]> {
  const left: string[] = []
  for (const name of await readdir(tmpdir()).catch(() => [])) {
    if (!name.startsWith(PREFIX)) continue
    const folder = join(tmpdir(), name)
    // A folder that cannot be read or removed belongs to another user, or another process removes it.
    const isGone = await removeAbandoned(folder).catch(() => false)
    if (!isGone) left.push(folder)
  }
  return left
}

async function removeAbandoned(folder: string): Promise<boolean> {
  if (!(await isAbandoned(folder))) return false
  await rm(folder, { recursive: true, force: true })
  return true
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
