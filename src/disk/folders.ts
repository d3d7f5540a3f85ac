import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { serial } from '../core/index.ts'
import { fsyncFolder } from './open-file.ts'
import { LinkGuard } from './paths.ts'
import { isAbsent } from './storage-error.ts'

const MAX_KNOWN = 100_000

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

  /** Forgets which folders are there, after some were removed. */
  forget(): void {
    this.#made.clear()
  }

  async #make(folder: string): Promise<void> {
    if (this.#made.has(folder)) return
    await this.guard.check(folder).catch((error: unknown) => {
      if (!isAbsent(error)) throw error
    })
    const first = await mkdir(folder, { recursive: true, mode: this.#mode })
    // Each folder that was made is an entry in its parent, which must reach the disk as well.
    if (first !== undefined) {
      for (let each = folder; each.length >= first.length; each = dirname(each))
        await fsyncFolder(dirname(each))
    }
    if (this.#made.size > MAX_KNOWN) this.#made.clear()
    this.#made.add(folder)
  }
}
