import { lstatSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { dirname, relative, sep } from 'node:path'
import { storageError } from './storage-error.ts'

// Enough for the folders of most data sets; beyond it they are looked at again.
const MAX_KNOWN = 100_000

/**
 * Holds every folder between a data set and its files against symbolic links: through one a run would read, cut off
 * and delete files that are none of its own. Each folder is looked at once. The data set itself may be a link.
 */
export class FolderGuard {
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

  /** The same, for those who work without promises. */
  checkSync(folder: string): void {
    for (const step of this.#unknown(folder)) {
      const found = lstatSync(step)
      if (found.isSymbolicLink()) throw this.#link(step)
      if (found.isDirectory()) this.#known.add(step)
    }
  }

  #link(full: string): unknown {
    const name = relative(this.#root, full).replaceAll(sep, '/')
    return storageError(Object.assign(new Error('a link'), { code: 'ELOOP' }), name)
  }

  /** Folders from the data set down to this one that were not looked at yet. */
  #unknown(folder: string): readonly string[] {
    if (this.#known.size > MAX_KNOWN) this.#known.clear()
    const steps: string[] = []
    for (let step = folder; step.length > this.#root.length && !this.#known.has(step); step = dirname(step)) {
      steps.unshift(step)
    }
    return steps
  }
}
