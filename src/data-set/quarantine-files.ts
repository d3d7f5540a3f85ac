import {
  type BlobRef,
  type DecodedPage,
  ExportError,
  type InvalidPolicy,
  type JournalEntry,
  type OwnedStore,
  type Partition,
  type RefusedItem,
  sideBySide,
} from '../core/index.ts'
import { QUARANTINE_FOLDER, quarantineLines, quarantinePath, writeQuarantine } from '../load/index.ts'
import { type Journal, splitPath } from '../state/index.ts'

/** A chain, as far as its rejected items are concerned. */
type ChainOfPartitions = {
  readonly folded: { readonly pages: number } | undefined
  partitionAt(index: number): Partition
}

/**
 * The quarantine files of a run. Rejected items are committed with their page, and get into the file of their partition
 * later.
 */
export class Quarantine {
  readonly #store: OwnedStore
  readonly #journal: Journal
  readonly #policy: InvalidPolicy
  /** Files of earlier runs. Not all items in them need be committed. */
  readonly #left: ReadonlySet<string>
  /** Finished partitions with such files. */
  readonly #tidied = new Set<string>()

  private constructor(store: OwnedStore, journal: Journal, policy: InvalidPolicy, left: ReadonlySet<string>) {
    this.#store = store
    this.#journal = journal
    this.#policy = policy
    this.#left = left
  }

  static async open(store: OwnedStore, journal: Journal, policy: InvalidPolicy): Promise<Quarantine> {
    const names = await store.list(QUARANTINE_FOLDER)
    const left = new Set(names.map((name) => `${QUARANTINE_FOLDER}/${name}`))
    return new Quarantine(store, journal, policy, left)
  }

  /** The lines of a page's rejected items, by partition. */
  linesOf(chain: ChainOfPartitions, page: DecodedPage, refused: ReadonlyMap<number, readonly RefusedItem[]>) {
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

  /**
   * Partitions that get no more items: where they were exported anew, their files lose the items of before.
   * @param indexes of their windows in the chain
   */
  tidy(chain: ChainOfPartitions, indexes: readonly number[]): void {
    if (this.#left.size === 0) return
    for (const index of indexes) {
      const { key } = chain.partitionAt(index)
      if (this.#left.has(quarantinePath(key))) this.#tidied.add(key)
    }
  }

  /** Brings the files in line with the log. */
  async write(): Promise<void> {
    const { state } = this.#journal
    const keys = new Set([...state.rejected.keys(), ...this.#tidied])
    const entries: JournalEntry[] = []
    await sideBySide(keys, async (partition) => {
      const refs = state.rejected.get(partition) ?? []
      const lines = await Promise.all(refs.map((ref) => this.#read(ref)))
      const end = state.partitions.get(partition)?.quarantineEnd ?? 0
      const size = await writeQuarantine(this.#store, partition, end, lines)
      if (refs.length > 0) entries.push({ kind: 'quarantined', partition, blobs: refs.length, end: size })
    })
    await this.#journal.append(entries)
  }

  async #read(ref: BlobRef): Promise<Uint8Array> {
    const lines = await this.#journal.read(ref)
    if (lines !== null) return lines
    throw new ExportError({
      kind: 'damaged',
      what: `Rejected items that commit ${ref.sequence} of the log holds are lost or changed`,
      where: '_state/log',
      next: 'Check the disk and run again: the partitions concerned are exported anew.',
    })
  }
}
