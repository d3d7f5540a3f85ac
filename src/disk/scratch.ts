import { closeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Scratch } from '../core/index.ts'
import { fsyncFile, writeChunks } from './open-file.ts'
import type { OwnedFiles } from './owned-files.ts'

// A small shard needs no file of its own before it has its name.
const MEMORY_BYTES = 1 << 20

// Thousands of shards may be open at once.
const ALL_MEMORY_BYTES = 64 << 20

/** The memory that all scratches of an owner take. */
export type ScratchMemory = { bytes: number }

/** A {@link Scratch} in memory, then in a temporary file in the staging directory. Throws errors of the file system. */
export class DiskScratch implements Scratch {
  readonly #files: OwnedFiles
  readonly #memory: ScratchMemory
  #chunks: Uint8Array[] = []
  #file: { readonly full: string; readonly file: number } | null = null
  size = 0

  constructor(files: OwnedFiles, memory: ScratchMemory) {
    this.#files = files
    this.#memory = memory
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (this.#file === null && this.#hasRoom(bytes.byteLength)) {
      this.#chunks.push(new Uint8Array(bytes))
      this.#memory.bytes += bytes.byteLength
    } else {
      this.#file ??= this.#files.temporary()
      writeChunks(this.#file.file, [...this.#chunks, bytes])
      this.#forget()
    }
    this.size += bytes.byteLength
  }

  async create(path: string): Promise<boolean> {
    try {
      if (this.#file === null) return await this.#files.create(path, this.#chunks)
      const { full, file } = this.#file
      await fsyncFile(file)
      closeSync(file)
      this.#file = null
      return await this.#files.createFrom(full, path)
    } finally {
      await this.discard()
    }
  }

  async discard(): Promise<void> {
    this.#forget()
    if (this.#file === null) return
    const { full, file } = this.#file
    this.#file = null
    closeSync(file)
    await rm(full, { force: true })
  }

  #hasRoom(bytes: number): boolean {
    return this.size + bytes <= MEMORY_BYTES && this.#memory.bytes + bytes <= ALL_MEMORY_BYTES
  }

  #forget(): void {
    for (const { byteLength } of this.#chunks) this.#memory.bytes -= byteLength
    this.#chunks = []
  }
}
