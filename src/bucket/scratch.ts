import { randomBytes } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExportError, type Scratch } from '../core/index.ts'
import { type Chunks, PART_BYTES } from './driver.ts'

// Thousands of shards may be open at once.
const ALL_MEMORY_BYTES = 64 << 20

/** The memory that all scratches of an owner take. */
export type ScratchMemory = { bytes: number }

/** A {@link Scratch} in memory, then in a temporary file of this machine that has no name. */
export class BucketScratch implements Scratch {
  readonly #make: (path: string, chunks: Chunks) => Promise<boolean>
  readonly #memory: ScratchMemory
  #chunks: Uint8Array[] = []
  #file: FileHandle | null = null
  size = 0

  /** @param make creates the object */
  constructor(make: (path: string, chunks: Chunks) => Promise<boolean>, memory: ScratchMemory) {
    this.#make = make
    this.#memory = memory
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (this.#file === null && this.#hasRoom(bytes.byteLength)) {
      this.#chunks.push(new Uint8Array(bytes))
      this.#memory.bytes += bytes.byteLength
    } else {
      try {
        this.#file ??= await openUnnamed()
        for (const chunk of [...this.#chunks, bytes]) await writeAll(this.#file, chunk)
      } catch (error) {
        throw noRoom(error)
      }
      this.#forget()
    }
    this.size += bytes.byteLength
  }

  async create(path: string): Promise<boolean> {
    try {
      return await this.#make(path, this.#file === null ? this.#chunks : readAll(this.#file, this.size))
    } finally {
      await this.discard()
    }
  }

  async discard(): Promise<void> {
    this.#forget()
    const file = this.#file
    this.#file = null
    await file?.close()
  }

  #hasRoom(bytes: number): boolean {
    return this.size + bytes <= PART_BYTES && this.#memory.bytes + bytes <= ALL_MEMORY_BYTES
  }

  #forget(): void {
    for (const { byteLength } of this.#chunks) this.#memory.bytes -= byteLength
    this.#chunks = []
  }
}

async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `spillway-${randomBytes(12).toString('hex')}`)
  const file = await open(path, 'wx+', 0o600)
  await rm(path, { force: true })
  return file
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.byteLength; ) {
    done += (await file.write(bytes, done, bytes.byteLength - done)).bytesWritten
  }
}

async function* readAll(file: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < size; ) {
    const block = new Uint8Array(Math.min(PART_BYTES, size - start))
    const { bytesRead } = await file.read(block, 0, block.byteLength, start)
    if (bytesRead === 0) throw noRoom(new Error('a temporary file became shorter'))
    start += bytesRead
    yield block.subarray(0, bytesRead)
  }
}

function noRoom(cause: unknown): ExportError {
  return new ExportError({
    kind: 'storage',
    what: 'A temporary file cannot be written',
    where: tmpdir(),
    next: 'Set TMPDIR to a folder that can be written to and has room, then run again.',
    cause,
  })
}
