import { spanOf } from '../rows/index.ts'
import {
  type BlobRef,
  type LoggedRows,
  type OpenEntry,
  type PageEntry,
  type PlacedRows,
  schemaKey,
} from '../state/index.ts'
import type { OpenShard } from './open-shard.ts'
import type { LoggedBatch, RowCache } from './row-cache.ts'
import { importedAt, recordBatchOf, type Slice } from './slice.ts'
import { countRows } from './take-rows.ts'

/** Where the rows of a page are: these keys of its entry. */
export type Placement = Pick<PageEntry, 'slices' | 'logged'>

export class Placed {
  readonly slices: PlacedRows[] = []
  readonly logged: LoggedRows[] = []
  readonly blobs: Uint8Array[]
  readonly opened: OpenEntry[] = []
  /** Shards whose rows all come with this page. */
  readonly whole: OpenShard[] = []
  readonly #rows: RowCache
  readonly #begun = new Set<OpenShard>()
  readonly #steps = new Map<OpenShard, Step[]>()
  #resolve: (done: Promise<readonly BlobRef[]>) => void = () => {}
  readonly #done = new Promise<readonly BlobRef[]>((resolve) => {
    this.#resolve = resolve
  })

  constructor(blobs: readonly Uint8Array[], rows: RowCache) {
    this.blobs = [...blobs]
    this.#rows = rows
    // A page without logged rows has nobody else who waits.
    this.#done.catch(() => {})
  }

  begun(shard: OpenShard): OpenShard {
    this.#begun.add(shard)
    return shard
  }

  add(shard: OpenShard, slice: Slice): void {
    const placed = new Map<string, PlacedRows>()
    let at = 0
    for (const { partition, rows } of slice.ranges) {
      const span = importedAt(slice, at, at + rows)
      shard.count(partition, rows, span)
      const before = placed.get(partition)
      placed.set(partition, {
        // The window's part of the key: {@link windowRange}.
        window: partition.slice(partition.lastIndexOf('/') + 1),
        shard: shard.shard,
        rows: rows + (before?.rows ?? 0),
        imported_at: spanOf(before?.imported_at ?? null, span),
      })
      at += rows
    }
    this.slices.push(...placed.values())
    this.#stepsOf(shard).push({ rows: countRows(slice.rows), bytes: recordBatchOf(slice) })
  }

  /** @param isEnd whether the shard gets no more rows */
  later(shard: OpenShard, work: () => void, isEnd = false): void {
    this.#stepsOf(shard).push({ work, isEnd })
  }

  /** Gives the rows to their shards: those of whole shards as they are, others by way of the log. */
  log(): void {
    for (const [shard, steps] of this.#steps) {
      const isWhole = shard.isFresh && steps.some((step) => 'work' in step && step.isEnd)
      if (isWhole) this.whole.push(shard)
      else if (this.#begun.has(shard)) {
        const { shard: number, folder, part, schema } = shard
        this.opened.push({ kind: 'open', shard: number, folder, part, ...schemaKey(schema) })
      }
      if (!isWhole) shard.isFresh = false
      for (const step of steps) {
        if ('work' in step) {
          if (!isWhole) step.work()
          else if (!step.isEnd) void shard.endRowGroup()
        } else if (isWhole) shard.add(step.bytes)
        else shard.add(this.#logged(shard, step))
      }
    }
  }

  #logged(
    shard: OpenShard,
    { rows, bytes }: { readonly rows: number; readonly bytes: Uint8Array },
  ): LoggedBatch {
    const blob = this.blobs.push(bytes) - 1
    this.logged.push({ shard: shard.shard, rows, blob })
    return this.#rows.add(
      bytes,
      this.#done.then((refs) => refs[blob]!),
    )
  }

  get placement(): Placement {
    const { slices, logged } = this
    if (slices.length === 0) return {}
    return { slices, ...(logged.length === 0 ? {} : { logged }) }
  }

  /** @param done the commit of the rows */
  committed(done: Promise<readonly BlobRef[]>): void {
    this.#resolve(done)
  }

  #stepsOf(shard: OpenShard): Step[] {
    const steps = this.#steps.get(shard) ?? []
    this.#steps.set(shard, steps)
    return steps
  }
}

/** Rows for a shard, or what is to be done after the rows before. */
type Step =
  | { readonly rows: number; readonly bytes: Uint8Array }
  | { readonly work: () => void; readonly isEnd: boolean }
