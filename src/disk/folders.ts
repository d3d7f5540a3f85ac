import { existsSync, lstatSync, type Stats } from 'node:fs'
import { mkdir, rmdir, stat } from 'node:fs/promises'
import { dirname, relative, resolve, sep } from 'node:path'
import { getOrInsert, hasCode } from '../core/index.ts'
import { fsyncFolder, statOf } from './open-file.ts'
import { DataSetGone } from './staging-directory.ts'
import { isAbsent, storageError, unlessAbsent } from './storage-error.ts'

/** The full path of a file of the data set at `root`. @throws Error when it would lie outside */
export function pathIn(root: string, path: string): string {
  const full = resolve(root, path)
  // Names are encoded already; this is a second check.
  if (full !== root && !isBelow(full, root)) throw new Error(`a path that leaves the data set`)
  return full
}

export function isBelow(full: string, folder: string): boolean {
  return full.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

// Enough for the folders of most data sets; beyond it they are checked again.
const MAX_KNOWN = 100_000

/** Refuses links below the data set: through one, a run would change other files. The data set itself may be a link. */
export class LinkGuard {
  readonly #root: string
  readonly #known = new Set<string>()

  constructor(root: string) {
    this.#root = root
  }

  /** @throws ExportError `storage` naming the link, or ENOENT where there is no such folder */
  check(folder: string): void {
    for (const step of this.#unknown(folder)) this.#take(step, lstatSync(step))
  }

  #take(full: string, found: Stats): void {
    if (found.isSymbolicLink())
      throw storageError(linkError(), relative(this.#root, full).replaceAll(sep, '/'))
    if (found.isDirectory()) this.#known.add(full)
  }

  /** Folders from the data set down to this one that were not checked yet. */
  #unknown(folder: string): readonly string[] {
    if (this.#known.size > MAX_KNOWN) this.#known.clear()
    const steps: string[] = []
    for (let step = folder; step.length > this.#root.length && !this.#known.has(step); step = dirname(step)) {
      steps.unshift(step)
    }
    return steps
  }
}

/** The folders of a data set: each is made, and its entry fsynced, before a file gets a name in it. */
export class Folders {
  readonly guard: LinkGuard
  readonly root: string
  readonly #mode: number
  readonly #made = new Set<string>()
  readonly #making = new Map<string, Promise<void>>()
  readonly #fsyncs = new SharedFsyncs()
  /** Whether the data set had a folder since this was made. */
  #wasThere = false

  constructor(root: string, mode: number) {
    this.guard = new LinkGuard(root)
    this.root = root
    this.#mode = mode
  }

  /** The location of a path whose folders are no links. */
  checked(path: string): string {
    const full = pathIn(this.root, path)
    this.guard.check(dirname(full))
    return full
  }

  /** What has the path; null: nothing, or its folder is missing. @throws where it is a link */
  find(path: string): Stats | null {
    const found = unlessAbsent(() => statOf(this.checked(path)))
    if (found?.isSymbolicLink()) throw linkError()
    return found
  }

  fsync(folder: string): Promise<void> {
    return this.#fsyncs.fsync(folder)
  }

  /** Makes the folder, gives a name in it, and fsyncs it. Does it again if a `remove` found the folder empty. */
  async naming<T>(folder: string, work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#make(folder)
        const result = await work()
        // If another task is making the folder again, its entry must be on the disk before this returns.
        await this.#make(folder)
        await this.fsync(folder)
        return result
      } catch (error) {
        if (!hasCode(error, 'ENOENT') || error instanceof DataSetGone || attempt === MAX_ATTEMPTS) throw error
        this.#made.delete(folder)
      }
    }
  }

  /** Forces the removal of a name to the disk. @param removeEmpty also removes folders that became empty, never the root */
  async unnaming(folder: string, removeEmpty: boolean): Promise<void> {
    for (let at = folder; ; at = dirname(at)) {
      try {
        if (!removeEmpty || at === this.root || !(await this.#removeEmpty(at))) return await this.fsync(at)
      } catch (error) {
        // It is gone, and the name with it.
        if (at === this.root || !isAbsent(error)) throw error
      }
    }
  }

  async #removeEmpty(folder: string): Promise<boolean> {
    this.#made.delete(folder)
    try {
      await rmdir(folder)
      return true
    } catch (error) {
      if (hasCode(error, 'ENOTEMPTY', 'EEXIST')) return false
      throw error
    }
  }

  #make(folder: string): Promise<void> {
    if (this.#made.has(folder)) return DONE
    const making =
      this.#making.get(folder) ?? this.#makeNow(folder).finally(() => this.#making.delete(folder))
    this.#making.set(folder, making)
    return making
  }

  /** Not `recursive`: where the parent exists but takes no folder (`/proc`), that reads its ENOENT again and again. */
  async #makeNow(folder: string): Promise<void> {
    unlessAbsent(() => this.guard.check(folder))
    const parent = dirname(folder)
    const isNew = await this.#mkdir(folder).catch(async (error: unknown) => {
      if (!hasCode(error, 'ENOENT') || folder === parent) throw error
      // Nothing is made in place of a data set that was removed as a whole: what was named in it would count.
      if (this.#wasThere && !existsSync(this.root)) throw new DataSetGone()
      this.#made.delete(parent)
      await this.#make(parent)
      return this.#mkdir(folder)
    })
    // A folder that was made is an entry in its parent, which must reach the disk as well.
    if (isNew) await this.fsync(parent)
    if (this.#made.size > MAX_KNOWN) this.#made.clear()
    this.#made.add(folder)
    this.#wasThere ||= isBelow(folder, this.root)
  }

  /** @returns whether it was made */
  async #mkdir(folder: string): Promise<boolean> {
    try {
      await mkdir(folder, { mode: this.#mode })
    } catch (error) {
      if (hasCode(error, 'EEXIST') && (await stat(folder)).isDirectory()) return false
      throw error
    }
    return true
  }
}

// Each time a `remove` at the same time has found the folder empty.
const MAX_ATTEMPTS = 10

const DONE = Promise.resolve()

/** Calls for a folder during an fsync of it share the next one: the one that runs may have missed their names. */
class SharedFsyncs {
  readonly #running = new Map<string, Promise<void>>()
  readonly #next = new Map<string, Promise<void>>()

  fsync(folder: string): Promise<void> {
    return getOrInsert(this.#next, folder, async () => {
      await this.#running.get(folder)?.catch(() => {})
      this.#next.delete(folder)
      const running = fsyncFolder(folder).finally(() => this.#running.delete(folder))
      this.#running.set(folder, running)
      return running
    })
  }
}

/** The system's error for a link that is not followed. */
export function linkError(): Error {
  return Object.assign(new Error('a link'), { code: 'ELOOP' })
}
