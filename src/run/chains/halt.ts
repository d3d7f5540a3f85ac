import { ExportError, type Pipeline, type Store } from '../../core/index.ts'

/** The way for one part of a run to stop all of it, and to say why. */
export class Halt {
  readonly #controller = new AbortController()
  /** Aborts when waits and new requests are to end: from outside, or for an error that concerns everybody. */
  readonly signal: AbortSignal
  error: ExportError | null = null

  constructor(stop: AbortSignal) {
    this.signal = AbortSignal.any([stop, this.#controller.signal])
  }

  /** Whether no new partition is to be begun. */
  get halted(): boolean {
    return this.error !== null || this.signal.aborted
  }

  /**
   * The first cause stands; what the others say when they are told to stop is not one. When the budget is
   * used up, requests that it still covers go on: each of the others meets its end by itself.
   */
  because(error: ExportError): void {
    if (this.error === null || this.error.kind === 'interrupted') this.error = error
    if (error.kind !== 'quota') this.#controller.abort(error)
  }

  /** Stops the run for an error that is thrown on. */
  abort(): void {
    this.#controller.abort()
  }
}

/** A failure that is reported later: what comes next may show that it is not that partition's own. */
export class DeferredFailure {
  #report: (() => Promise<void>) | null = null

  get isHeld(): boolean {
    return this.#report !== null
  }

  hold(report: () => Promise<void>): void {
    this.#report = report
  }

  drop(): void {
    this.#report = null
  }

  async settle(): Promise<void> {
    const report = this.#report
    this.#report = null
    await report?.()
  }
}

// Masked rows take 80 to 300 bytes in the log of an open shard; texts may be long.
const BYTES_A_ROW = 1024
// For the lines of the checkpoint, the manifest and what else is small.
const BYTES_BESIDES = 1 << 20

/** Bytes that the pages in flight may need on the disk. */
function spaceNeeded({ extract }: Pipeline): number {
  return extract.concurrency * extract.pageSize * BYTES_A_ROW + BYTES_BESIDES
}

/**
 * Whether what is requested next could be kept: a page that finds no room on the disk was paid for in vain.
 * @returns what is to be said when it could not; null when it could, or when nothing is known of the disk
 */
export async function lackOfDiskSpace(pipeline: Pipeline, store: Store): Promise<ExportError | null> {
  const free = await store.freeBytes()
  const needed = spaceNeeded(pipeline)
  if (free === null || free >= needed) return null
  return new ExportError(
    'storage',
    `The disk has room for ${megabytes(free)} more, and the pages in flight may need ${megabytes(needed)}`,
    pipeline.load.path,
    'Free some space and run again, which goes on from the last committed page; a smaller extract.concurrency or page_size needs less.',
  )
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
