import type { DecodedPage, InvalidPolicy, PageEntry, RefusedItem, Store } from '../../core/index.ts'
import { appendQuarantine, cutQuarantine, QUARANTINE_FOLDER, quarantinePath } from '../../load/index.ts'
import { splitPath } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'

/** The quarantine files of a run. */
export class Quarantine {
  readonly #store: Store
  readonly #policy: InvalidPolicy
  /** Files of earlier runs. Not all items in them need be committed. */
  readonly #left: Set<string>

  private constructor(store: Store, policy: InvalidPolicy, left: Set<string>) {
    this.#store = store
    this.#policy = policy
    this.#left = left
  }

  static async open(store: Store, policy: InvalidPolicy): Promise<Quarantine> {
    const names = await store.list(QUARANTINE_FOLDER)
    return new Quarantine(store, policy, new Set(names.map((name) => `${QUARANTINE_FOLDER}/${name}`)))
  }

  /** Makes the rejected items of a page durable, each with its partition. @returns what is committed with the page */
  async append(
    chain: ChainProgress,
    page: DecodedPage,
    refused: ReadonlyMap<number, readonly RefusedItem[]>,
  ): Promise<NonNullable<PageEntry['quarantine']>> {
    if (this.#policy === 'fail' || page.quarantined.length === 0) return []
    const pages = chain.record?.pages ?? 0
    return Promise.all(
      [...refused].map(async ([index, items]) => {
        const { key } = chain.partitionAt(index)
        const lines = items.map(({ at: _, ...item }) => ({ partition: key, page: pages, ...item }))
        const end = await appendQuarantine(this.#store, key, chain.recordAt(index)?.quarantineEnd ?? 0, lines)
        this.#left.delete(quarantinePath(key))
        return { window: splitPath(key)[1], end, items: items.length }
      }),
    )
  }

  /**
   * Takes out of the files of partitions that are about to be done what a page left there that did not come to be on
   * record: it need not bring the same items again.
   * @param indexes of their windows on the chain's way; of those that a page has just added to nothing is left
   */
  async tidy(chain: ChainProgress, indexes: readonly number[]): Promise<void> {
    if (this.#left.size === 0) return
    for (const index of indexes) {
      const { key } = chain.partitionAt(index)
      if (!this.#left.delete(quarantinePath(key))) continue
      await cutQuarantine(this.#store, key, chain.recordAt(index)?.quarantineEnd ?? 0)
    }
  }
}
