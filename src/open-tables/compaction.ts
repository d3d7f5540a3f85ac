import { type Compacted, standsFor } from '../core/index.ts'

/** Whether shards hold the same rows as those that they replace, since these were compacted. */
export function isCompaction(
  added: readonly (Compacted & { readonly rows: number })[],
  removed: readonly { readonly path: string; readonly rows: number }[],
): boolean {
  const sum = (shards: readonly { readonly rows: number }[]): number =>
    shards.reduce((total, { rows }) => total + rows, 0)
  return (
    added.length > 0 &&
    added.every(({ stands_for }) => stands_for !== undefined) &&
    removed.every(({ path }) => added.some((shard) => standsFor(shard, path))) &&
    sum(added) === sum(removed)
  )
}
