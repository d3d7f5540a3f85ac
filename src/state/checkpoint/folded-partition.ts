import type { Entry, FailureEntry, PartitionEntry } from '../journal-entry.ts'
import type { BlobRef } from '../log/commit.ts'
import { PathMap, type ReadonlyPathMap } from './packed-collections.ts'

/** `partial`: begun, not finished; `pending`: not begun. */
export type PartitionState = (typeof PARTITION_STATES)[number]

export const PARTITION_STATES = ['done', 'partial', 'failed', 'pending', 'pruned'] as const

export type PartitionStates = { readonly [State in PartitionState]: number }

export const NO_PARTITIONS: PartitionStates = { done: 0, partial: 0, failed: 0, pending: 0, pruned: 0 }

/** Number of partitions of a plan by state, and of all but the pruned ones. */
export type PlanStates = PartitionStates & { readonly total: number }

/** Number of partitions of a plan that are done and that are left. `pending`: neither done nor failed. */
export type PartitionCounts = Pick<PlanStates, 'total' | 'done' | 'failed' | 'pending'>

export function partitionCounts(
  total: number,
  { done, failed }: Pick<PartitionCounts, 'done' | 'failed'>,
): PartitionCounts {
  return { total, done, failed, pending: total - done - failed }
}

export type FoldedPartition = {
  /** `partial`: some rows are committed, or a chain has reached it; `pruned`: its rows were removed permanently. */
  readonly state: Exclude<PartitionState, 'pending'>
  readonly rows: number
  /** Pages that began in it. A page may have rows of many partitions. */
  readonly pages: number
  readonly requests: number
  readonly quarantined: number
  /** Items that the service sent again. */
  readonly repeated: number
  /** Items of forgotten people: removed, or dropped before anything was written. */
  readonly forgotten: number
  /** Committed bytes of the partition's quarantine file. */
  readonly quarantineEnd: number
  readonly error: FailureEntry | null
}

/** Partitions by key: what readers find of them, and beside it what is exported again. */
export type FoldedPartitions = {
  readonly partitions: ReadonlyPathMap<FoldedPartition>
  readonly redo: {
    /** What is exported of each again; null: nothing yet. */
    readonly partitions: ReadonlyMap<string, FoldedPartition | null>
    readonly rejected: ReadonlyMap<string, readonly BlobRef[]>
  }
  /** Rejected items that are in the log, but not in the quarantine file of their partition yet. */
  readonly rejected: ReadonlyMap<string, readonly BlobRef[]>
}

/** Whether a shard has rows of a partition that is exported again: if it is sealed, it goes then; its own wait if it is open. */
export function isRedone(
  { redo }: Pick<FoldedPartitions, 'redo'>,
  { partitions }: { readonly partitions: Iterable<string> },
): boolean {
  if (redo.partitions.size === 0) return false
  for (const key of partitions) if (redo.partitions.has(key)) return true
  return false
}

/** What a run goes on from. While a partition is exported again, that is not what readers find. */
export function presentOf(
  {
    partitions,
    redo,
  }: Pick<FoldedPartitions, 'partitions'> & { readonly redo: Pick<FoldedPartitions['redo'], 'partitions'> },
  key: string,
): FoldedPartition | undefined {
  const again = redo.partitions.get(key)
  return again === undefined ? partitions.get(key) : (again ?? undefined)
}

export type PartitionSums = {
  readonly rows: number
  readonly quarantined: number
  readonly repeated: number
  readonly forgotten: number
}

export const NO_SUMS: PartitionSums = { rows: 0, quarantined: 0, repeated: 0, forgotten: 0 }

export function sumOfPartitions(state: Pick<FoldedPartitions, 'partitions'>): PartitionSums {
  const sum = { ...NO_SUMS }
  for (const [, exported] of state.partitions) {
    sum.rows += exported.rows
    sum.quarantined += exported.quarantined
    sum.repeated += exported.repeated
    sum.forgotten += exported.forgotten
  }
  return sum
}

export function hasBegun(folded: FoldedPartition): boolean {
  return isOver(folded) || folded.rows > 0 || folded.quarantined > 0 || folded.forgotten > 0
}

/** Whether at least part of a query is exported. @param query name of the query */
export function isKnown({ partitions }: Pick<FoldedPartitions, 'partitions'>, query: string): boolean {
  for (const folded of partitions.branches.get(query)?.values() ?? []) if (hasBegun(folded)) return true
  return false
}

export function isOver({ state }: FoldedPartition): boolean {
  return state === 'done' || state === 'pruned'
}

/** Whether nothing of a partition is left to request; also where it failed for what came. */
export function hasEnded(folded: FoldedPartition): boolean {
  return isOver(folded) || (folded.state === 'failed' && folded.error?.ended === true)
}

export class Partitions implements FoldedPartitions {
  readonly partitions = new PathMap<FoldedPartition>()
  readonly rejected = new Map<string, readonly BlobRef[]>()
  readonly redo = {
    partitions: new Map<string, FoldedPartition | null>(),
    rejected: new Map<string, readonly BlobRef[]>(),
  }
  readonly #oneOf = shareEqual()

  /** @param change what becomes another of it; of what is exported again, where it is */
  update(key: string, change: (folded: FoldedPartition) => Partial<FoldedPartition>): void {
    const { partitions } = this.redo
    const again = partitions.get(key)
    if (again === undefined) this.updateExported(key, change)
    else partitions.set(key, { ...(again ?? BEGINNING), ...change(again ?? BEGINNING) })
  }

  /** As readers find it. */
  updateExported(key: string, change: (folded: FoldedPartition) => Partial<FoldedPartition>): void {
    this.partitions.update(key, (folded = BEGINNING) => this.#oneOf({ ...folded, ...change(folded) }))
  }

  markPartial(key: string): void {
    this.update(key, () => ({ state: 'partial' }))
  }

  markDone(key: string): void {
    this.update(key, (folded) => (hasEnded(folded) ? {} : { state: 'done', error: null }))
  }

  addRejected(key: string, items: number, blob: BlobRef): void {
    this.update(key, ({ quarantined }) => ({ state: 'partial', quarantined: quarantined + items }))
    const { rejected } = this.redo.partitions.has(key) ? this.redo : this
    rejected.set(key, [...(rejected.get(key) ?? []), blob])
  }

  setRejected(key: string, blobs: readonly BlobRef[], isRedo = false): void {
    const { rejected } = isRedo ? this.redo : this
    rejected.set(key, blobs)
  }

  /** The first of its rejected items are in its quarantine file. */
  takeQuarantined({ partition, blobs, end }: Entry<'quarantined'>): void {
    const left = (this.rejected.get(partition) ?? []).slice(blobs)
    if (left.length > 0) this.rejected.set(partition, left)
    else this.rejected.delete(partition)
    this.setQuarantineEnd(partition, end)
  }

  setQuarantineEnd(key: string, quarantineEnd: number): void {
    if (this.partitions.get(key) !== undefined) this.updateExported(key, () => ({ quarantineEnd }))
  }

  /** Bytes were copied. @param to where those are now that the state needs */
  move(to: (at: BlobRef) => BlobRef): void {
    for (const { rejected } of [this, this.redo])
      for (const [key, blobs] of rejected) rejected.set(key, blobs.map(to))
  }

  /** @param isSealed whether all of its rows so far are in sealed shards, which stay */
  begin(key: string, isSealed: boolean): void {
    if (!isSealed && !this.redo.partitions.has(key)) this.markPartial(key)
    this.#dropRejected(key)
    this.redo.partitions.set(key, null)
  }

  /** What was exported again takes the place of what there was. */
  replace(key: string): void {
    const { partitions, rejected } = this.redo
    const [again, waiting] = [partitions.get(key) ?? null, rejected.get(key)]
    this.#dropRejected(key)
    partitions.delete(key)
    if (again !== null) this.updateExported(key, () => again)
    if (waiting !== undefined) this.rejected.set(key, waiting)
  }

  /** It keeps its pages and requests, without rows; what is exported of it again goes, too. */
  prune(key: string): void {
    this.#dropRejected(key)
    this.redo.partitions.delete(key)
    this.updateExported(key, ({ pages, requests }) => ({ ...BEGINNING, state: 'pruned', pages, requests }))
  }

  #dropRejected(key: string): void {
    this.rejected.delete(key)
    this.redo.rejected.delete(key)
  }

  set({ partition, ...entry }: PartitionEntry): void {
    const {
      state = 'done',
      repeated = 0,
      forgotten = 0,
      quarantine_end: quarantineEnd = 0,
      error = null,
    } = entry
    const { rows, pages, requests, quarantined } = entry
    const figures = { rows, pages, requests, quarantined, repeated, forgotten, quarantineEnd }
    this.update(partition, () => ({ state, ...figures, error }))
  }
}

// Small partitions are many and often have equal figures; large partitions are few.
const MAX_SHARED = 10_000

/** Shares one object among finished partitions with equal figures, to save memory for half a million partitions. */
function shareEqual(): (folded: FoldedPartition) => FoldedPartition {
  const shared = new Map<string, FoldedPartition>()
  return (folded) => {
    if (!isOver(folded) || folded.error !== null) return folded
    const figures = Object.values(folded).join(' ')
    const known = shared.get(figures)
    if (known !== undefined) return known
    if (shared.size < MAX_SHARED) shared.set(figures, folded)
    return folded
  }
}

const BEGINNING: FoldedPartition = {
  state: 'partial',
  rows: 0,
  pages: 0,
  requests: 0,
  quarantined: 0,
  repeated: 0,
  forgotten: 0,
  quarantineEnd: 0,
  error: null,
}
