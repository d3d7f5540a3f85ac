import { ExportError, type Pipeline, type Store } from '../../core/index.ts'
import { openStore } from '../../data-set/index.ts'

/** Stops all of a run for an error in one part of it. */
export class Halt {
  readonly #controller = new AbortController()
  /** Aborts to end waits and new requests: on an outside signal, or for an error that concerns all chains. */
  readonly signal: AbortSignal
  error: ExportError | null = null
  readonly #shortage: () => Promise<ExportError | null>

  /** @param shortage of disk space; null: there is none */
  constructor(stop: AbortSignal, shortage: () => Promise<ExportError | null>) {
    this.signal = AbortSignal.any([stop, this.#controller.signal])
    this.#shortage = shortage
  }

  get halted(): boolean {
    return this.error !== null || this.signal.aborted
  }

  /** Keeps the first cause, or a graver one. Requests that a used-up budget still covers continue. */
  stopFor(error: ExportError): void {
    if (this.error === null || gravity(error) > gravity(this.error)) this.error = error
    if (error.kind !== 'quota') this.#controller.abort(error)
  }

  /** Stops the run if the next page does not fit on the disk: it would be paid for in vain. */
  async withoutSpace(): Promise<void> {
    const shortage = await this.#shortage()
    if (shortage !== null) this.stopFor(shortage)
  }

  /** Stops the run for an error that the caller throws. */
  abort(): void {
    this.#controller.abort()
  }
}

function gravity({ kind }: ExportError): number {
  return kind === 'interrupted' ? 0 : kind === 'quota' ? 1 : 2
}

// Masked rows take 80 to 300 bytes in the log; strings may be long.
const BYTES_A_ROW = 1024
// For journal entries, the manifest and other small files.
const OVERHEAD_BYTES = 1 << 20

/** @returns null: there is space, or it is not known */
export async function shortageOfDiskSpace(
  { extract, load }: Pipeline,
  store: Store,
): Promise<ExportError | null> {
  const free = await store.freeBytes()
  const needed = extract.concurrency * extract.pageSize * BYTES_A_ROW + OVERHEAD_BYTES
  if (free === null || free >= needed) return null
  return new ExportError({
    kind: 'storage',
    what: `The disk has room for ${megabytes(free)} more, and the pages in flight may need ${megabytes(needed)}`,
    where: load.path,
    next: 'Free some space and run again to resume from the last committed page; a smaller extract.concurrency or page_size needs less.',
  })
}

/** @throws ExportError `storage` when the first page of a run would not fit */
export async function requireRoom(pipeline: Pipeline): Promise<void> {
  const shortage = await shortageOfDiskSpace(pipeline, openStore(pipeline))
  if (shortage !== null) throw shortage
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
