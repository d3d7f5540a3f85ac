import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { hasCode, takenOver } from '../core/index.ts'
import { fsyncFolder, statOf } from './open-file.ts'
import { isAbsent, nullIfAbsent } from './storage-error.ts'

/** The whole data set is missing, so no folder of it may be made again. */
export class DataSetGone extends Error {
  readonly code = 'ENOENT'
}

/**
 * One owner changes a data set through it: files get their names from there, and lose them to there. Its name is the
 * fencing token: its removal ends the owner's rights in one step, also if the process was stopped between two calls.
 */
export class StagingDirectory {
  #files = 0

  private constructor(readonly full: string) {}

  static async make(state: string, owner: string, mode: number): Promise<StagingDirectory> {
    const staging = new StagingDirectory(join(state, `open.${owner}`))
    await mkdir(staging.full, { mode })
    return staging
  }

  temporary(): string {
    return join(this.full, String(this.#files++))
  }

  /** @throws ExportError `locked` when another owner took over; ENOENT when the whole data set is missing */
  async require(): Promise<void> {
    if (statOf(this.full) !== null) return
    if (statOf(dirname(this.full)) !== null) throw takenOver(`_state/${basename(this.full)} is gone`)
    throw new DataSetGone()
  }

  async takeOver(owner: string): Promise<void> {
    const former = join(dirname(this.full), `open.${owner}`)
    const taken = this.temporary()
    try {
      // Its former owner finds it missing as a whole, not file by file.
      await rename(former, taken)
    } catch (error) {
      if (!isAbsent(error)) throw error
      return await this.require()
    }
    await removeFolder(taken)
  }

  release(): Promise<void> {
    return removeFolder(this.full)
  }

  /** The name of a former owner's directory, once it is gone, must not come back. */
  fsync(): Promise<void> {
    return fsyncFolder(dirname(this.full))
  }
}

async function removeFolder(folder: string): Promise<void> {
  for (;;) {
    const names = await readdir(folder).catch(nullIfAbsent)
    for (const name of names ?? []) await rm(join(folder, name), { recursive: true, force: true })
    try {
      return await rmdir(folder)
    } catch (error) {
      if (isAbsent(error)) return
      // Its owner is awake and has just made something in it: over a network it may still have the folder open.
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
    }
  }
}
