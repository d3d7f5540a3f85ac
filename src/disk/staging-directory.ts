import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { takenOver } from '../core/index.ts'
import { isBelow } from './folders.ts'
import { copyContent, fsyncFolder, openFile } from './open-file.ts'
import { hasCode, isAbsent } from './storage-error.ts'

/** Names of temporary files, which a later owner deletes. */
const TEMPORARY = /\.(?:tmp|gone)$/

/** Marks files that their former owner may still write to. */
const SHARED = '.shared'

const REMOVAL_MS = 1000
const POLL_MS = 20

export type Modes = { readonly fileMode: number; readonly dirMode: number }

/**
 * The directory through which one owner changes a data set: `_state/open.<owner>`, which represents `_state/open`. Its
 * name is the fencing token. Removing the directory ends the rights of its owner in one step, since a removed directory
 * takes no more names and gives none. That holds for a process that was stopped between two calls, and over a network.
 */
export class StagingDirectory {
  readonly full: string
  readonly #common: string
  readonly #modes: Modes

  private constructor(common: string, owner: string, modes: Modes) {
    this.#common = common
    this.full = directoryOf(common, owner)
    this.#modes = modes
  }

  /** Makes the directory; its parent exists. */
  static async make(common: string, owner: string, modes: Modes): Promise<StagingDirectory> {
    const staging = new StagingDirectory(common, owner, modes)
    await mkdir(staging.full, { mode: modes.dirMode })
    await fsyncFolder(dirname(staging.full))
    return staging
  }

  /** The real location of a path: what is below the common name is below this directory. */
  locate(full: string): string {
    if (full !== this.#common && !isBelow(full, this.#common)) return full
    return this.full + full.slice(this.#common.length)
  }

  has(full: string): boolean {
    return isBelow(full, this.full)
  }

  /** A path for a temporary file. */
  temporary(kind: 'tmp' | 'gone'): string {
    return join(this.full, `${randomBytes(4).toString('hex')}.${kind}`)
  }

  /** @throws ExportError `locked` when another owner took over; ENOENT when the whole data set is missing */
  async require(): Promise<void> {
    if (await isThere(this.full)) return
    if (await isThere(dirname(this.full))) throw takenOver(`_state/${basename(this.full)} is gone`)
    throw Object.assign(new Error('the folder is gone'), { code: 'ENOENT' })
  }

  /**
   * The same after a file in it was found missing. A new owner makes a directory of its own, then takes the files of this
   * one, and removes it last. So while there is another directory, this waits up to a second.
   */
  async requireSettled(): Promise<void> {
    for (let waitedMs = 0; waitedMs < REMOVAL_MS; waitedMs += POLL_MS) {
      await this.require()
      if (!(await this.#hasRival())) return
      await wait(POLL_MS)
    }
    await this.require()
  }

  /** Whether there is a staging directory of another owner. */
  async #hasRival(): Promise<boolean> {
    const names = await readdir(dirname(this.full)).catch(emptyIfAbsent)
    return names.some((name) => name.startsWith(`${basename(this.#common)}.`) && name !== basename(this.full))
  }

  /** @returns whether there was anything in it */
  async takeOver(owner: string | null, mayWrite: boolean): Promise<boolean> {
    const from = owner === null ? this.#common : directoryOf(this.#common, owner)
    let found = false
    for (;;) {
      const names = await readdir(from).catch(emptyIfAbsent)
      found ||= names.length > 0
      for (const name of names) await this.#take(from, name, mayWrite)
      await fsyncFolder(this.full)
      try {
        await rmdir(from)
        break
      } catch (error) {
        if (isAbsent(error)) break
        // Its owner is awake and has just made something in it.
        if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
      }
    }
    await fsyncFolder(dirname(this.full))
    return found
  }

  async #take(from: string, name: string, mayWrite: boolean): Promise<void> {
    const old = join(from, name)
    try {
      if (TEMPORARY.test(name)) await rm(old, { recursive: true, force: true })
      else await rename(old, join(this.full, mayWrite && !name.endsWith(SHARED) ? name + SHARED : name))
    } catch (error) {
      if (!isAbsent(error)) throw error
      await this.require()
    }
  }

  /** Replaces files that a former owner may write to by copies. */
  async settle(): Promise<void> {
    for (const name of await readdir(this.full)) {
      if (!name.endsWith(SHARED)) continue
      const shared = join(this.full, name)
      const settled = shared.slice(0, -SHARED.length)
      // A copy that exists is complete: a crash came before the original was removed.
      if (!(await isThere(settled))) await this.copy(shared, settled)
      await rm(shared, { recursive: true, force: true })
    }
    await fsyncFolder(this.full)
  }

  /** Gives `to` the content of `from` in one step. */
  async copy(from: string, to: string): Promise<void> {
    const source = await openFile(from, constants.O_RDONLY)
    try {
      const temporary = this.temporary('tmp')
      const target = await openFile(
        temporary,
        constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL,
        this.#modes.fileMode,
      )
      try {
        await copyContent(source, target)
        await target.sync()
      } finally {
        await target.close()
      }
      await rename(temporary, to)
    } finally {
      await source.close()
    }
  }

  /** Gives the directory its common name, or removes it when nothing is in it. */
  async release(): Promise<void> {
    const names = await readdir(this.full).catch(emptyIfAbsent)
    for (const name of names) {
      if (TEMPORARY.test(name)) await rm(join(this.full, name), { recursive: true, force: true })
    }
    try {
      await rmdir(this.full)
    } catch (error) {
      if (isAbsent(error)) return
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
      await rename(this.full, this.#common).catch((error: unknown) => {
        // A directory of that name is there still: this owner did not take it over. The next owner takes over both.
        if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
      })
    }
    await fsyncFolder(dirname(this.full))
  }
}

function directoryOf(common: string, owner: string): string {
  return `${common}.${owner}`
}

export async function isThere(full: string): Promise<boolean> {
  try {
    await lstat(full)
    return true
  } catch (error) {
    if (isAbsent(error)) return false
    throw error
  }
}

function emptyIfAbsent(error: unknown): string[] {
  if (isAbsent(error)) return []
  throw error
}
