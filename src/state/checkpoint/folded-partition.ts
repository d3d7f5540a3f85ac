import type { FailureEntry, PartitionEntry } from '../journal-entry.ts'
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
  }
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
export function presentOf({ partitions, redo }: FoldedPartitions, key: string): FoldedPartition | undefined {
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

export function isOver({ state }: FoldedPartition): boolean {
  return state === 'done' || state === 'pruned'
}

/** Whether nothing of a partition is left to request; also where it failed for what came. */
export function hasEnded(folded: FoldedPartition): boolean {
  return isOver(folded) || (folded.state === 'failed' && folded.error?.ended === true)
}

export class Partitions {
  /** As readers find them. */
  readonly all = new PathMap<FoldedPartition>()
  /** What is exported again: see {@link FoldedPartitions}. */
  readonly again = new Map<string, FoldedPartition | null>()
  readonly #oneOf = shareEqual()

  get(key: string): FoldedPartition | undefined {
    return presentOf({ partitions: this.all, redo: { partitions: this.again } }, key)
  }

  addPage(key: string, requests: number, repeated: number): void {
    this.#update(key, (folded) => ({
      ...folded,
      state: 'partial',
      pages: folded.pages + 1,
      requests: folded.requests + requests,
      repeated: folded.repeated + repeated,
      error: null,
    }))
  }

  addRows(key: string, rows: number): void {
    this.#update(key, (folded) => ({ ...folded, state: 'partial', rows: folded.rows + rows }))
  }

  addQuarantined(key: string, items: number): void {
    this.#update(key, (folded) => ({ ...folded, state: 'partial', quarantined: folded.quarantined + items }))
  }

  /** Items that were dropped for forgotten people. */
  addForgotten(key: string, items: number): void {
    this.#update(key, (folded) => ({ ...folded, forgotten: folded.forgotten + items }))
  }

  /** Items that were removed again. @param isRedo of what is exported again */
  forget(key: string, rows: number, quarantined: number, isRedo: boolean): void {
    const without = (folded: FoldedPartition): FoldedPartition => ({
      ...folded,
      rows: folded.rows - rows,
      quarantined: folded.quarantined - quarantined,
      forgotten: folded.forgotten + rows + quarantined,
    })
    if (isRedo) this.#update(key, without)
    else this.#updateExported(key, without)
  }

  setQuarantineEnd(key: string, quarantineEnd: number): void {
    if (this.all.get(key) !== undefined) this.#updateExported(key, (folded) => ({ ...folded, quarantineEnd }))
  }

  markPartial(key: string): void {
    this.#update(key, (folded) => ({ ...folded, state: 'partial' }))
  }

  markDone(key: string): void {
    this.#update(key, (folded) => (hasEnded(folded) ? folded : { ...folded, state: 'done', error: null }))
  }

  /** An error after the last page of a partition does not fail it: its rows are complete. But too many items may be rejected. */
  markFailed(key: string, requests: number, error: FailureEntry): void {
    this.#update(key, (folded) => ({
      ...folded,
      state: isOver(folded) && error.ended !== true ? folded.state : 'failed',
      requests: folded.requests + requests,
      error,
    }))
  }

  /** @param isSealed whether all of its rows so far are in sealed shards, which stay */
  redo(key: string, isSealed: boolean): void {
    if (!isSealed && !this.again.has(key))
      this.#updateExported(key, (folded) => ({ ...folded, state: 'partial' }))
    this.again.set(key, null)
  }

  replace(key: string): void {
    const again = this.again.get(key) ?? null
    this.again.delete(key)
    if (again !== null) this.#updateExported(key, () => again)
  }

  /** It keeps its pages and requests, without rows; what is exported of it again goes, too. */
  prune(key: string): void {
    this.again.delete(key)
    this.#updateExported(key, ({ pages, requests }) => ({ ...BEGINNING, state: 'pruned', pages, requests }))
  }

  set({ partition, ...entry }: PartitionEntry): void {
    const state = entry.state ?? 'done'
    const { rows, pages, requests, quarantined, repeated = 0, forgotten = 0 } = entry
    const { quarantine_end: quarantineEnd = 0, error = null } = entry
    const figures = { rows, pages, requests, quarantined, repeated, forgotten, quarantineEnd }
    this.#update(partition, () => ({ state, ...figures, error }))
  }

  #update(key: string, change: (folded: FoldedPartition) => FoldedPartition): void {
    const again = this.again.get(key)
    if (again === undefined) this.#updateExported(key, change)
    else this.again.set(key, change(again ?? BEGINNING))
  }

  #updateExported(key: string, change: (folded: FoldedPartition) => FoldedPartition): void {
    this.all.update(key, (folded) => this.#oneOf(change(folded ?? BEGINNING)))
  }
}

// Small partitions are many and often have equal figures; large partitions are few.
const MAX_SHARED = 10_000

/** Shares one object among finished partitions with equal figures, to save memory for half a million partitions. */
function shareEqual(): (folded: FoldedPartition) => FoldedPartition {
  const shared = new Map<string, FoldedPartition>()
  return (folded) => {
    if (!isOver(folded) || folded.error !== null) return folded
    const { state, rows, pages, requests, quarantined, repeated, forgotten, quarantineEnd } = folded
    const figures = `${state} ${rows} ${pages} ${requests} ${quarantined} ${repeated} ${forgotten} ${quarantineEnd}`
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
