import { ExportError, placeOf } from '../../core/index.ts'
import { type Span, spanOf } from '../../rows/index.ts'
import type { Entry, RewrittenRows, SwapEntry } from '../journal-entry.ts'
import { type BlobRef, blobRef } from '../log/commit.ts'
import { PackedShardList, PathMap, type SealedShard, splitPath } from './packed-collections.ts'

export type ShardIdentity = {
  readonly shard: number
  readonly folder: string
  readonly part: number
  /** Number of its schema. */
  readonly schema: number
}

/** A shard whose rows are in the log. */
export type FoldedShard = ShardIdentity & {
  readonly partitions: ReadonlySet<string>
  readonly importedAt: Span | null
  readonly batches: readonly BatchRef[]
}

/** A record batch in the log. */
export type BatchRef = { readonly rows: number; readonly at: BlobRef }

type GrowingShard = ShardIdentity & {
  readonly partitions: Set<string>
  importedAt: Span | null
  batches: BatchRef[]
}

export class FoldedShards {
  readonly open = new Map<number, GrowingShard>()
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

  seal(shard: SealedShard): void {
    this.#countPart(shard.shard, placeOf(shard.path))
    this.open.delete(shard.shard)
    this.sealed.push(shard)
  }

  /** Drops shards whose rows are in the log alone. @returns the partitions that have lost rows */
  drop(isDropped: (open: GrowingShard) => boolean): ReadonlySet<string> {
    const cut = new Set<string>()
    const dropped = [...this.open.values()].filter(isDropped)
    for (const { shard, partitions } of dropped) {
      for (const key of partitions) cut.add(key)
      this.open.delete(shard)
    }
    // Nobody has seen their paths, so the last ones of a folder are free again.
    for (const { folder, part } of dropped.sort((a, b) => b.part - a.part)) {
      if (this.partsOf.get(folder) === part + 1) this.partsOf.update(folder, () => part)
      else this.#countGone(folder)
    }
    return cut
  }

  /** Rows go that wait in the log: the batches with these numbers become others. */
  rewrite({ shard, imported_at, batches }: RewrittenRows, blobs: readonly BlobRef[]): void {
    const open = this.open.get(shard)
    if (open === undefined) return
    const others = new Map(batches.map(({ batch, rows, blob }) => [batch, { rows, at: blobs[blob]! }]))
    open.batches = open.batches.map((each, i) => others.get(i) ?? each).filter(({ rows }) => rows > 0)
    open.importedAt = imported_at
    if (open.batches.length === 0) this.drop((each) => each === open)
  }

  /** Shards go, and others come. */
  swap(shards: SwapEntry['shards']): void {
    for (const { by } of shards) if (by !== null) this.seal(by)
    const gone = new Set(shards.flatMap(({ of }) => of))
    for (const path of this.sealed.remove(gone)) {
      this.invalidated.add(path)
      this.#countGone(splitPath(path)[0])
    }
  }

  setParts({ folder, begun, gone }: Entry<'parts'>): void {
    this.partsOf.update(folder, (parts = 0) => Math.max(parts, begun))
    this.goneFrom.set(folder, gone)
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
