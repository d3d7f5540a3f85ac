import { closeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { TemporaryFile } from '../core/index.ts'
import { fsyncFile, openToAppend, writeChunks } from './open-file.ts'

/** A first run may begin thousands of shards, and many systems let a process open 256 files. */
const MAX_OPEN = 64

type Creation = {
  /** Makes an empty file. */
  make(): { readonly full: string; readonly file: number }
  /** Gives a file that is forced to the disk its name. */
  name(full: string, path: string): Promise<boolean>
}

/** Files that grow side by side. Of all of them the last {@link MAX_OPEN} that grew are open. */
export class TemporaryFiles {
  readonly #creation: Creation
  /** Descriptors by path; the one that was used last comes last. */
  readonly #open = new Map<string, number>()

  constructor(creation: Creation) {
    this.#creation = creation
  }

  make(): TemporaryFile {
    const { full, file } = this.#creation.make()
    this.#keep(full, file)
    return {
      append: async (chunks) => writeChunks(this.#descriptor(full), chunks),
      create: async (path) => {
        const file = this.#descriptor(full)
        // While it is forced to the disk, nobody else may close it.
        this.#open.delete(full)
        try {
          await fsyncFile(file)
        } finally {
          closeSync(file)
        }
        return this.#creation.name(full, path)
      },
      discard: async () => {
        const file = this.#open.get(full)
        this.#open.delete(full)
        if (file !== undefined) closeSync(file)
        await rm(full, { force: true })
      },
    }
  }

  #descriptor(full: string): number {
    const file = this.#open.get(full) ?? openToAppend(full)
    this.#keep(full, file)
    return file
  }

  #keep(full: string, file: number): void {
    this.#open.delete(full)
    this.#open.set(full, file)
    if (this.#open.size <= MAX_OPEN) return
    const [oldest, descriptor] = this.#open.entries().next().value!
    this.#open.delete(oldest)
    closeSync(descriptor)
  }
}
