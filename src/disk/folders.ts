import { lstatSync } from 'node:fs'
import { lstat, mkdir, stat } from 'node:fs/promises'
import { dirname, relative, resolve, sep } from 'node:path'
import { serial } from '../core/index.ts'
import { fsyncFolder } from './open-file.ts'
import { hasCode, isAbsent, storageError } from './storage-error.ts'

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

/**
 * Refuses symbolic links among the folders between a data set and its files: through a link a run would read, cut and
 * delete files that are not its own. Each folder is checked once. The data set itself may be a link.
 */
export class LinkGuard {
  readonly #root: string
  readonly #known = new Set<string>()

  constructor(root: string) {
    this.#root = root
  }

  /** @throws ExportError `storage` naming the link, or ENOENT where there is no such folder */
  async check(folder: string): Promise<void> {
    for (const step of this.#unknown(folder)) {
      const found = await lstat(step)
      if (found.isSymbolicLink()) throw this.#link(step)
      if (found.isDirectory()) this.#known.add(step)
    }
  }

  /** The same without promises. */
  checkSync(folder: string): void {
    for (const step of this.#unknown(folder)) {
      const found = lstatSync(step)
      if (found.isSymbolicLink()) throw this.#link(step)
      if (found.isDirectory()) this.#known.add(step)
    }
  }

  #link(full: string): unknown {
    const name = relative(this.#root, full).replaceAll(sep, '/')
    return storageError(linkError(), name)
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

/** The folders of a data set. */
export class Folders {
  readonly guard: LinkGuard
  readonly #mode: number
  readonly #made = new Set<string>()
  // If two tasks need the same new folder, the second one waits until its entry is fsynced.
  readonly #inTurn = serial()

  constructor(root: string, mode: number) {
    this.guard = new LinkGuard(root)
    this.#mode = mode
  }

  /** Makes a folder that is not there yet, and fsyncs its entry. */
  make(folder: string): Promise<void> {
    return this.#inTurn(() => this.#make(folder))
  }

  /** Forgets which folders exist, after some were removed. */
  forget(): void {
    this.#made.clear()
  }

  async #make(folder: string): Promise<void> {
    if (this.#made.has(folder)) return
    await this.guard.check(folder).catch((error: unknown) => {
      if (!isAbsent(error)) throw error
    })
    // Each folder that was made is an entry in its parent, which must reach the disk as well.
    for (const made of (await makeWithParents(folder, this.#mode)).reverse()) await fsyncFolder(dirname(made))
    if (this.#made.size > MAX_KNOWN) this.#made.clear()
    this.#made.add(folder)
  }
}

/**
 * Makes a folder and the missing ones above it. `mkdir` with `recursive` never ends where the parent exists but takes no
 * folder (`/proc`): it reads that ENOENT as a missing parent, again and again.
 * @returns the folders that were made, from the top
 */
async function makeWithParents(folder: string, mode: number): Promise<string[]> {
  const existing = await makeUnlessThere(folder, mode).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT') && folder !== dirname(folder)) return null
    throw error
  })
  if (existing !== null) return existing
  const parents = await makeWithParents(dirname(folder), mode)
  return [...parents, ...(await makeUnlessThere(folder, mode))]
}

async function makeUnlessThere(folder: string, mode: number): Promise<string[]> {
  try {
    await mkdir(folder, { mode })
    return [folder]
  } catch (error) {
    if (hasCode(error, 'EEXIST') && (await stat(folder)).isDirectory()) return []
    throw error
  }
}

/** The system's error for a link that is not followed. */
export function linkError(): Error {
  return Object.assign(new Error('a link'), { code: 'ELOOP' })
}
