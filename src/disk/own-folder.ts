import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ExportError } from '../core/index.ts'
import { hasCode, isAbsent } from './codes.ts'
import { copyContent, flushFolder, openFile } from './open-file.ts'
import { isBelow } from './place.ts'

/** Names of what is only on its way in or out; whoever finds it later may delete it. */
const PASSING = /\.(?:tmp|gone)$/

/** Marks files that their earlier owner may still write to. */
const SHARED = '.shared'

export type Modes = { readonly fileMode: number; readonly dirMode: number }

/**
 * The folder through which one owner changes a data set: `_state/open.<owner>`, in the place of `_state/open`. Taking
 * it away is the one step that ends an owner's rights, since a folder that is removed takes no more names, and gives
 * none: not to a process that was stopped between two calls, and not over a network either.
 */
export class OwnFolder {
  readonly full: string
  readonly #common: string
  readonly #modes: Modes

  private constructor(common: string, owner: string, modes: Modes) {
    this.#common = common
    this.full = folderOf(common, owner)
    this.#modes = modes
  }

  /** Makes the folder; the one above it is there. */
  static async make(common: string, owner: string, modes: Modes): Promise<OwnFolder> {
    const own = new OwnFolder(common, owner, modes)
    await mkdir(own.full, { mode: modes.dirMode })
    await flushFolder(dirname(own.full))
    return own
  }

  /** Where a path really leads. */
  place(full: string): string {
    if (full !== this.#common && !isBelow(full, this.#common)) return full
    return this.full + full.slice(this.#common.length)
  }

  has(full: string): boolean {
    return isBelow(full, this.full)
  }

  /** A name for what is on its way in or out. */
  passing(kind: 'tmp' | 'gone'): string {
    return join(this.full, `${randomBytes(4).toString('hex')}.${kind}`)
  }

  /** @throws ExportError `locked` when another owner took it away; ENOENT when the whole data set is gone */
  async require(): Promise<void> {
    if (await isThere(this.full)) return
    if (await isThere(dirname(this.full))) throw takenOver(basename(this.full))
    throw Object.assign(new Error('the folder is gone'), { code: 'ENOENT' })
  }

  /** @returns whether there was anything in it */
  async takeOver(owner: string | null, mayWrite: boolean): Promise<boolean> {
    const from = owner === null ? this.#common : folderOf(this.#common, owner)
    let found = false
    for (;;) {
      const names = await readdir(from).catch(emptyIfAbsent)
      found ||= names.length > 0
      for (const name of names) await this.#take(from, name, mayWrite)
      await flushFolder(this.full)
      try {
        await rmdir(from)
        break
      } catch (error) {
        if (isAbsent(error)) break
        // Its owner is awake and has just made something in it.
        if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
      }
    }
    await flushFolder(dirname(this.full))
    return found
  }

  async #take(from: string, name: string, mayWrite: boolean): Promise<void> {
    const old = join(from, name)
    try {
      if (PASSING.test(name)) await rm(old, { recursive: true, force: true })
      else await rename(old, join(this.full, mayWrite && !name.endsWith(SHARED) ? name + SHARED : name))
    } catch (error) {
      if (!isAbsent(error)) throw error
      await this.require()
    }
  }

  /** Puts copies in the place of files that an earlier owner may write to. */
  async settle(): Promise<void> {
    for (const name of await readdir(this.full)) {
      if (!name.endsWith(SHARED)) continue
      const shared = join(this.full, name)
      const settled = shared.slice(0, -SHARED.length)
      // A copy that is there is whole: whoever made it did not come to remove the original.
      if (!(await isThere(settled))) await this.copy(shared, settled)
      await rm(shared, { recursive: true, force: true })
    }
    await flushFolder(this.full)
  }

  /** Gives `to` the content of `from` in one step. */
  async copy(from: string, to: string): Promise<void> {
    const source = await openFile(from, constants.O_RDONLY)
    try {
      const passing = this.passing('tmp')
      const target = await openFile(
        passing,
        constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL,
        this.#modes.fileMode,
      )
      try {
        await copyContent(source, target)
        await target.sync()
      } finally {
        await target.close()
      }
      await rename(passing, to)
    } finally {
      await source.close()
    }
  }

  /** Gives the folder its common name, or removes it when nothing is in it. */
  async leave(): Promise<void> {
    const names = await readdir(this.full).catch(emptyIfAbsent)
    for (const name of names) {
      if (PASSING.test(name)) await rm(join(this.full, name), { recursive: true, force: true })
    }
    try {
      await rmdir(this.full)
    } catch (error) {
      if (isAbsent(error)) return
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
      await rename(this.full, this.#common).catch((error: unknown) => {
        // What was left before is there still: this owner never came to take it over, so both wait for the next.
        if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
      })
    }
    await flushFolder(dirname(this.full))
  }
}

function folderOf(common: string, owner: string): string {
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

function takenOver(folder: string): ExportError {
  return new ExportError(
    'locked',
    'Another run has taken this pipeline over, because this one showed no sign of life',
    `_state/${folder} is gone`,
    'Let the other one go on; what this one had in hand is asked for again, and nothing is lost or doubled.',
  )
}
