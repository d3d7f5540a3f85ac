import { ExportError, placeOf } from '../../core/index.ts'
import { type Span, spanOf } from '../../rows/index.ts'
import { type BatchRef, type BlobRef, blobRef, type FoldedShard } from '../commit-log.ts'
import type { Entry, SwapEntry } from '../journal-entry.ts'
import { PackedShardList, PathMap, type SealedShard, splitPath } from './packed-collections.ts'

type GrowingShard = Omit<FoldedShard, 'partitions' | 'batches' | 'importedAt'> & {
  readonly partitions: Set<string>
  importedAt: Span | null
  batches: BatchRef[]
}

export class FoldedShards {
  readonly open = new Map<number, GrowingShard>()
  /** Sealed, with rows that are exported again: they are published once they replace others. */
  readonly redone = new Map<number, SealedShard>()
  readonly sealed = new PackedShardList()
  readonly invalidated = new Set<string>()
  readonly partsOf = new PathMap<number>()
  readonly goneFrom = new Map<string, number>()
  next = 0

  begin({ shard, folder, part, schema = 0, contents }: Entry<'open'>): void {
    this.#countPart(shard, { folder, part })
    this.open.set(shard, {
      shard,
      folder,
      part,
      schema,
      partitions: new Set(contents?.partitions),
      importedAt: contents?.imported_at ?? null,
      batches: contents?.batches.map(([rows, ...blob]) => ({ rows, at: blobRef(blob) })) ?? [],
    })
  }

  /** Adds rows of a partition, if the shard is not sealed yet. */
  addRows(number: number, partition: string, span: Span | null): void {
    const open = this.open.get(number)
    if (open === undefined) return
    open.partitions.add(partition)
    open.importedAt = spanOf(open.importedAt, span)
  }

  /** @throws ExportError `damaged` when the shard is not open: the rows would never be in a shard */
  addBatch(number: number, batch: BatchRef): void {
    const open = this.open.get(number)
    if (open === undefined) throw nowhere(number, batch)
    open.batches.push(batch)
  }

  move(to: (at: BlobRef) => BlobRef): void {
    for (const open of this.open.values())
      open.batches = open.batches.map(({ rows, at }) => ({ rows, at: to(at) }))
  }

  seal({ kind: _, ...seal }: Entry<'seal'>, isRedone: boolean): void {
    this.#countPart(seal.shard, placeOf(seal.path))
    this.open.delete(seal.shard)
    if (isRedone) this.redone.set(seal.shard, seal)
    else this.sealed.push(seal)
  }

  /** Drops what readers do not have yet. @returns the other shards, and the partitions that have lost rows */
  drop(numbers: Iterable<number>): { readonly left: readonly number[]; readonly cut: ReadonlySet<string> } {
    const cut = new Set<string>()
    const left: number[] = []
    const dropped: ReturnType<typeof placeOf>[] = []
    for (const shard of numbers) {
      const open = this.open.get(shard)
      const redone = this.redone.get(shard)
      if (open !== undefined) dropped.push(open)
      else if (redone !== undefined) dropped.push(placeOf(redone.path))
      else left.push(shard)
      for (const key of (open ?? redone)?.partitions ?? []) cut.add(key)
      this.open.delete(shard)
      this.redone.delete(shard)
    }
    // Nobody has seen their paths, so the last ones of a folder are free again.
    for (const { folder, part } of dropped.sort((a, b) => b.part - a.part)) {
      if (this.partsOf.get(folder) === part + 1) this.partsOf.update(folder, () => part)
      else this.#countGone(folder)
    }
    return { left, cut }
  }

  replace(numbers: readonly number[], isRedone: (shard: SealedShard) => boolean): void {
    this.#invalidate(numbers)
    for (const [number, shard] of this.redone) {
      if (isRedone(shard)) continue
      this.redone.delete(number)
      this.sealed.push(shard)
    }
  }

  /** Puts shards into the places of others. What takes the place of a redone one waits as well. */
  swap(shards: SwapEntry['shards']): void {
    const others: number[] = []
    for (const { of, by } of shards) {
      let isRedone = false
      for (const number of of) {
        const redone = this.redone.get(number)
        if (redone === undefined) others.push(number)
        else this.#countGone(splitPath(redone.path)[0])
        isRedone ||= this.redone.delete(number)
      }
      if (by === null) continue
      this.#countPart(by.shard, placeOf(by.path))
      if (isRedone) this.redone.set(by.shard, by)
      else this.sealed.push(by)
    }
    this.#invalidate(others)
  }

  /** Removes the shards that hold rows of these partitions alone. @returns the numbers of those that readers had */
  removeOf(isGone: (partition: string) => boolean): readonly number[] {
    const goes = ({ partitions }: { readonly partitions: Iterable<string> }): boolean =>
      [...partitions].every(isGone)
    this.drop([...this.open.values(), ...this.redone.values()].filter(goes).map(({ shard }) => shard))
    // One without rows shows the columns of a data set, whatever partition it is named after.
    const known = [...this.sealed].filter((each) => each.rows > 0 && goes(each))
    const numbers = known.map(({ shard }) => shard)
    if (numbers.length > 0) this.#invalidate(numbers)
    return numbers
  }

  setParts({ folder, begun, gone }: Entry<'parts'>): void {
    this.partsOf.update(folder, (parts = 0) => Math.max(parts, begun))
    this.goneFrom.set(folder, gone)
  }

  #invalidate(shards: readonly number[]): void {
    for (const path of this.sealed.remove(new Set(shards))) {
      this.invalidated.add(path)
      this.#countGone(splitPath(path)[0])
    }
  }

  #countGone(folder: string): void {
    this.goneFrom.set(folder, (this.goneFrom.get(folder) ?? 0) + 1)
  }

  #countPart(shard: number, { folder, part }: ReturnType<typeof placeOf>): void {
    this.next = Math.max(this.next, shard + 1)
    this.partsOf.update(folder, (parts = 0) => Math.max(parts, part + 1))
  }
}

function nowhere(shard: number, { rows, at }: BatchRef): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: `File ${at.file} of the log has ${rows} rows for shard ${shard}, which is not open`,
    where: '_state/log',
    next: 'Restore the folder from a backup, or start over with --fresh. Report this error: the log contradicts itself.',
  })
}
