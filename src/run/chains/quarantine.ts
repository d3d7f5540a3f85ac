import {
  type DecodedPage,
  ExportError,
  type InvalidPolicy,
  numberOf,
  type PageEntry,
  type Partition,
  type QuarantineLimit,
  type RefusedItem,
  type Store,
  type TransformSettings,
} from '../../core/index.ts'
import { appendQuarantine, cutQuarantine, QUARANTINE_FOLDER, quarantinePath } from '../../load/index.ts'
import { type PartitionRecord, splitPath } from '../../state/index.ts'
import type { ChainProgress } from './chain-progress.ts'
import type { SplitPage } from './split-by-window.ts'

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
   * Removes items of pages that were not committed from the files of partitions that are about to be done: a repeated
   * request may return other items.
   * @param indexes of their windows in the chain; those that a page has just added to need no cleaning
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

// A share of fewer items means little: one broken item of ten does not make a tenth of all items.
const LEAST_SHARED = 100

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
    super('data', what, where, next)
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
  record: PartitionRecord | undefined,
  added?: Added,
): PartitionFault | null {
  const [first] = added?.refused ?? []
  if (onInvalid === 'fail' && first !== undefined)
    return invalidItem(first, index, `${key}, page ${(added?.page ?? 0) + 1}`)
  const quarantined = (record?.quarantined ?? 0) + (added?.refused.length ?? 0)
  const seen = (record?.rows ?? 0) + (added?.rows ?? 0) + quarantined
  const allowed = allowedOf(maxQuarantined)
  if (quarantined === 0 || !allowed.isExceeded(quarantined, seen)) return null
  return new PartitionFault(
    index,
    `${quarantined} of ${numberOf(seen, 'item')} ${quarantined === 1 ? 'breaks' : 'break'} the schema, and transform.max_quarantined is ${allowed.text}`,
    key,
    'Inspect them in _quarantine and run again, with a higher transform.max_quarantined if they may be left out.',
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
  const page = chain.record?.pages ?? 0
  for (const index of [...new Set([...rows.keys(), ...refused.keys()])].sort((a, b) => a - b)) {
    const items: readonly RefusedItem[] = refused.get(index) ?? []
    const added = { rows: rows.get(index) ?? 0, refused: items, page }
    const fault = excessOf(chain.partitionAt(index), index, settings, chain.recordAt(index), added)
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

type Allowed = { readonly text: string; isExceeded(quarantined: number, seen: number): boolean }

function allowedOf(limit: QuarantineLimit): Allowed {
  switch (limit.kind) {
    case 'count':
      return { text: String(limit.items), isExceeded: (quarantined) => quarantined > limit.items }
    case 'share':
      return {
        text: `${limit.percent}%`,
        isExceeded: (quarantined, seen) => seen >= LEAST_SHARED && 100 * quarantined > limit.percent * seen,
      }
  }
}
