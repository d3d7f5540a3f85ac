import type { Scratch } from './store.ts'

// Thousands of shards may be open at once.
const ALL_MEMORY_BYTES = 64 << 20

type ScratchPlace = {
  /** A larger scratch goes into a temporary file. */
  readonly memoryBytes: number
  /** As {@link Scratch.create}, of bytes in memory. */
  create(path: string, chunks: readonly Uint8Array[]): Promise<boolean>
  temporaryFile(): Promise<TemporaryFile>
}

export type TemporaryFile = {
  append(chunks: readonly Uint8Array[]): Promise<void>
  create(path: string): Promise<boolean>
  /** Ends it, also after `create`. */
  discard(): Promise<void>
}

/** Makes scratches of one owner. They share their memory. */
export function scratchesIn(place: ScratchPlace): () => Scratch {
  const memory = { bytes: 0 }
  return () => new MemoryThenFile(place, memory)
}

class MemoryThenFile implements Scratch {
  readonly #place: ScratchPlace
  /** Of all scratches of the owner. */
  readonly #memory: { bytes: number }
  #chunks: Uint8Array[] = []
  #file: TemporaryFile | null = null
  size = 0

  constructor(place: ScratchPlace, memory: { bytes: number }) {
    this.#place = place
    this.#memory = memory
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (this.#file === null && this.#hasRoom(bytes.byteLength)) {
      this.#chunks.push(new Uint8Array(bytes))
      this.#memory.bytes += bytes.byteLength
    } else {
      this.#file ??= await this.#place.temporaryFile()
      await this.#file.append([...this.#chunks, bytes])
      this.#forget()
    }
    this.size += bytes.byteLength
  }

  async create(path: string): Promise<boolean> {
    try {
      return await (this.#file === null ? this.#place.create(path, this.#chunks) : this.#file.create(path))
    } finally {
      await this.discard()
    }
  }

  async discard(): Promise<void> {
    this.#forget()
    const file = this.#file
    this.#file = null
    await file?.discard()
  }

  #hasRoom(bytes: number): boolean {
    return this.size + bytes <= this.#place.memoryBytes && this.#memory.bytes + bytes <= ALL_MEMORY_BYTES
  }

  #forget(): void {
    for (const { byteLength } of this.#chunks) this.#memory.bytes -= byteLength
    this.#chunks = []
  }
}
