import { closeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { TemporaryFile } from '../core/index.ts'
import { fsyncFile, openToAppend, writeChunks } from './open-file.ts'

type Creation = {
  make(): { readonly full: string; readonly file: number }
  /** Gives a file that is forced to the disk its name. */
  name(full: string, path: string): Promise<boolean>
}

/** Files that grow side by side, thousands of them. The one that grew last is open: many systems let a process open 256. */
export class TemporaryFiles {
  readonly #creation: Creation
  #last: { readonly full: string; readonly file: number } | null = null

  constructor(creation: Creation) {
    this.#creation = creation
  }

  make(): TemporaryFile {
    this.#close()
    this.#last = this.#creation.make()
    const { full } = this.#last
    return {
      append: async (chunks) => writeChunks(this.#open(full), chunks),
      create: async (path) => {
        const file = this.#open(full)
        // While it is forced to the disk, no other may close it.
        this.#last = null
        try {
          await fsyncFile(file)
        } finally {
          closeSync(file)
        }
        return this.#creation.name(full, path)
      },
      discard: async () => {
        if (this.#last?.full === full) this.#close()
        await rm(full, { force: true })
      },
    }
  }

  #open(full: string): number {
    if (this.#last?.full === full) return this.#last.file
    this.#close()
    const file = openToAppend(full)
    this.#last = { full, file }
    return file
  }

  #close(): void {
    const last = this.#last
    this.#last = null
    if (last !== null) closeSync(last.file)
  }
}
