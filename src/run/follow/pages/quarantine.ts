import { ExportError, numberOf, type Partition, type TransformSettings } from '../../../core/index.ts'
import { allowedOf } from '../../../data-set/index.ts'
import { quarantinePath } from '../../../load/index.ts'
import type { RejectedItem } from '../../../rows/index.ts'
import { type FoldedPartition, splitPath } from '../../../state/index.ts'
import type { Chain, SplitPage } from '../chain.ts'

/** A fault of one partition of a chain. The windows before and after it can still be exported. */
export class PartitionFault extends ExportError {
  /** @param rejected why items of the page were rejected: fields and rules, no values */
  constructor(
    readonly index: number,
    what: string,
    where: string,
    next: string,
    /** The description that all partitions with this fault share. */
    readonly common: string,
    readonly rejected: readonly RejectedItem['issues'][] = [],
  ) {
    super({ kind: 'data', what, where, next })
  }
}

export type Added = { readonly rows: number; readonly rejected: readonly RejectedItem[] }

/** The fault of a partition with too many quarantined items, over all pages of all runs; null: it has not. */
export function excessOf(
  { key }: Pick<Partition, 'key'>,
  index: number,
  { maxQuarantined }: Pick<TransformSettings, 'maxQuarantined'>,
  folded: FoldedPartition | undefined,
  added?: Added,
): PartitionFault | null {
  const quarantined = (folded?.quarantined ?? 0) + (added?.rejected.length ?? 0)
  const seen = (folded?.rows ?? 0) + (added?.rows ?? 0) + quarantined
  const allowed = allowedOf(maxQuarantined)
  if (quarantined === 0 || !allowed.isExceeded(quarantined, seen)) return null
  return new PartitionFault(
    index,
    `${quarantined} of ${numberOf(seen, 'item')} ${quarantined === 1 ? 'breaks' : 'break'} the schema, and transform.max_quarantined is ${allowed.text}`,
    key,
    `Another run changes nothing. Inspect them in ${quarantinePath(key)}: a higher transform.max_quarantined goes on from there, \`run --redo\` exports the partition anew.`,
    `more than ${allowed.text} of items rejected (transform.max_quarantined)`,
    added?.rejected.map(({ issues }) => issues),
  )
}

/** The fault of a page that is not to be committed: an item breaks the schema under `on_invalid: fail`; null: there is none. */
export function invalidItemOf(
  { rejected }: SplitPage,
  chain: Chain,
  { onInvalid }: TransformSettings,
): PartitionFault | null {
  if (onInvalid !== 'fail' || rejected.size === 0) return null
  const index = Math.min(...rejected.keys())
  const { index: item, issues } = rejected.get(index)![0]!
  // Names of fields, never values.
  const paths = new Set(issues.map(({ path }) => (path === '' ? 'the item itself' : path)))
  const fields = [...paths].join(', ')
  return new PartitionFault(
    index,
    `Item ${item + 1} of the response breaks the schema at ${fields}`,
    `${chain.partitionAt(index).key}, page ${numberOfPage(chain)}`,
    'Set transform.on_invalid to quarantine to export the rest.',
    `items break the schema at ${fields}`,
  )
}

function numberOfPage({ folded }: Chain): number {
  return (folded?.pages ?? 0) + 1
}

/** The faults of partitions that have too many rejected items with this page, of those given by their index. */
export function excessesOf(
  { rows, rejected }: SplitPage,
  chain: Chain,
  settings: TransformSettings,
  indexes: readonly number[],
): readonly PartitionFault[] {
  return indexes.flatMap((index) => {
    const added = { rows: rows.get(index) ?? 0, rejected: rejected.get(index) ?? [] }
    return excessOf(chain.partitionAt(index), index, settings, chain.foldedAt(index), added) ?? []
  })
}

export function quarantineOf({ rejected }: SplitPage, chain: Chain) {
  const page = numberOfPage(chain)
  return [...rejected].map(([index, items]) => {
    const { key } = chain.partitionAt(index)
    const lines = items.map(({ at: _, ...item }) => `${JSON.stringify({ partition: key, page, ...item })}\n`)
    return { window: splitPath(key)[1], items: items.length, lines: Buffer.from(lines.join('')) }
  })
}
