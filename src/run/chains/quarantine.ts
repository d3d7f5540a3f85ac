import {
  type BlobRef,
  type DecodedPage,
  ExportError,
  type InvalidPolicy,
  type JournalEntry,
  numberOf,
  type OwnedStore,
  type Partition,
  type RefusedItem,
  sideBySide,
  type TransformSettings,
} from '../../core/index.ts'
import { QUARANTINE_FOLDER, quarantineLines, quarantinePath, writeQuarantine } from '../../load/index.ts'
import { type FoldedPartition, type OpenLog, splitPath } from '../../state/index.ts'
import { allowedOf } from '../data-set/quarantine-limit.ts'
import type { ChainProgress } from './chain-progress.ts'
import type { SplitPage } from './split-by-window.ts'

/**
 * The quarantine files of a run. Rejected items are committed with their page, and get into the file of their partition
 * later.
 */
export class Quarantine {
  readonly #store: OwnedStore
  readonly #checkpoint: OpenLog
  readonly #policy: InvalidPolicy
  /** Files of earlier runs. Not all items in them need be committed. */
  readonly #left: ReadonlySet<string>
  /** Finished partitions with such files. */
  readonly #tidied = new Set<string>()
  /** Lines of pages that are not committed, by partition. */
  readonly #shown = new Map<string, Uint8Array>()

  private constructor(
    store: OwnedStore,
    checkpoint: OpenLog,
    policy: InvalidPolicy,
    left: ReadonlySet<string>,
  ) {
    this.#store = store
    this.#checkpoint = checkpoint
    this.#policy = policy
    this.#left = left
  }

  static async open(store: OwnedStore, checkpoint: OpenLog, policy: InvalidPolicy): Promise<Quarantine> {
    const names = await store.list(QUARANTINE_FOLDER)
    const left = new Set(names.map((name) => `${QUARANTINE_FOLDER}/${name}`))
    return new Quarantine(store, checkpoint, policy, left)
  }

  /** The lines of a page's rejected items, by partition. */
  linesOf(chain: ChainProgress, page: DecodedPage, refused: ReadonlyMap<number, readonly RefusedItem[]>) {
    if (this.#policy === 'fail' || page.quarantined.length === 0) return []
    const number = (chain.folded?.pages ?? 0) + 1
    return [...refused].map(([index, items]) => {
      const { key } = chain.partitionAt(index)
      const lines = quarantineLines(
        items.map(({ at: _, ...item }) => ({ partition: key, page: number, ...item })),
      )
      return { partition: key, window: splitPath(key)[1], items: items.length, lines }
    })
  }

  /** Keeps the rejected items of a page that is not committed, for inspection until it is requested again. */
  show(...page: Parameters<Quarantine['linesOf']>): void {
    for (const { partition, lines } of this.linesOf(...page)) this.#shown.set(partition, lines)
  }

  /**
   * Partitions that get no more items: their files lose the items of pages that were not committed, since a repeated
   * request may return other items.
   * @param indexes of their windows in the chain
   */
  tidy(chain: ChainProgress, indexes: readonly number[]): void {
    if (this.#left.size === 0) return
    for (const index of indexes) {
      const { key } = chain.partitionAt(index)
      if (this.#left.has(quarantinePath(key))) this.#tidied.add(key)
    }
  }

  /** Brings the files in line with the log. */
  async write(): Promise<void> {
    const { state } = this.#checkpoint
    const keys = new Set([...state.rejected.keys(), ...this.#tidied, ...this.#shown.keys()])
    const entries: JournalEntry[] = []
    await sideBySide(keys, async (partition) => {
      const refs = state.rejected.get(partition) ?? []
      const lines = await Promise.all(refs.map((ref) => this.#read(ref)))
      const end = state.partitions.get(partition)?.quarantineEnd ?? 0
      const shown = this.#shown.get(partition)
      const size = await writeQuarantine(this.#store, partition, end, shown ? [...lines, shown] : lines)
      if (refs.length === 0) return
      const committed = size - (shown?.byteLength ?? 0)
      entries.push({ kind: 'quarantined', partition, blobs: refs.length, end: committed })
    })
    await this.#checkpoint.append(entries)
  }

  async #read(ref: BlobRef): Promise<Uint8Array> {
    const lines = await this.#checkpoint.read(ref)
    if (lines !== null) return lines
    throw new ExportError({
      kind: 'damaged',
      what: `Rejected items that commit ${ref.sequence} of the log holds are lost or changed`,
      where: '_state/log',
      next: 'Check the disk and run again: the partitions concerned are exported anew.',
    })
  }
}

/** A fault of one partition of a chain. The windows before and after it can still be exported. */
export class PartitionFault extends ExportError {
  /** The index of its window in the chain. */
  readonly index: number
  /** Why items were rejected that are in quarantine while their page is not committed; fields and rules, no values. */
  readonly refused: readonly RefusedItem['issues'][]
  /** The description that all partitions with this fault share. */
  readonly common: string

  constructor(
    index: number,
    what: string,
    where: string,
    next: string,
    common: string = what,
    refused: readonly RefusedItem['issues'][] = [],
  ) {
    super({ kind: 'data', what, where, next })
    this.index = index
    this.common = common
    this.refused = refused
  }
}

/** What an uncommitted page adds to a partition. */
export type Added = {
  readonly rows: number
  readonly refused: readonly RefusedItem[]
  /** Pages of the chain before it. */
  readonly page: number
}

/**
 * Tests whether a partition has more quarantined items than allowed, over all of its pages, those of earlier runs too.
 * @returns the fault; null: it has not
 */
export function excessOf(
  { key }: Partition,
  index: number,
  { onInvalid, maxQuarantined }: TransformSettings,
  folded: FoldedPartition | undefined,
  added?: Added,
): PartitionFault | null {
  const [first] = added?.refused ?? []
  if (onInvalid === 'fail' && first !== undefined)
    return invalidItem(first, index, `${key}, page ${(added?.page ?? 0) + 1}`)
  const quarantined = (folded?.quarantined ?? 0) + (added?.refused.length ?? 0)
  const seen = (folded?.rows ?? 0) + (added?.rows ?? 0) + quarantined
  const allowed = allowedOf(maxQuarantined)
  if (quarantined === 0 || !allowed.isExceeded(quarantined, seen)) return null
  return new PartitionFault(
    index,
    `${quarantined} of ${numberOf(seen, 'item')} ${quarantined === 1 ? 'breaks' : 'break'} the schema, and transform.max_quarantined is ${allowed.text}`,
    key,
    `Inspect them in ${quarantinePath(key)} and run again, with a higher transform.max_quarantined if they may be left out.`,
    `more than ${allowed.text} of items rejected (transform.max_quarantined)`,
    added?.refused.map(({ issues }) => issues),
  )
}

/** The fault of the first partition of the chain for which this page has too many rejected items. */
export function excessOfPage(
  { rows, refused }: SplitPage,
  chain: ChainProgress,
  settings: TransformSettings,
): PartitionFault | null {
  const page = chain.folded?.pages ?? 0
  for (const index of [...new Set([...rows.keys(), ...refused.keys()])].sort((a, b) => a - b)) {
    const items: readonly RefusedItem[] = refused.get(index) ?? []
    const added = { rows: rows.get(index) ?? 0, refused: items, page }
    const fault = excessOf(chain.partitionAt(index), index, settings, chain.foldedAt(index), added)
    if (fault !== null) return fault
  }
  return null
}

/** An item breaks the schema under `on_invalid: fail`. Names fields, never values. */
function invalidItem({ index: item, issues }: RefusedItem, index: number, where: string): PartitionFault {
  const paths = new Set(issues.map(({ path }) => path))
  const fields = [...paths].map((path) => (path === '' ? 'the item itself' : path))
  return new PartitionFault(
    index,
    `Item ${item + 1} of the response breaks the schema at ${fields.join(', ')}`,
    where,
    'Set transform.on_invalid to quarantine to export the rest.',
    `items break the schema at ${fields.join(', ')}`,
  )
}
