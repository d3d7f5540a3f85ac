/** Parts of a folder, first and last of each range. */
type PartRanges = readonly (readonly [first: number, last: number])[]

/** A shard as far as compaction is concerned. */
export type Compacted = { readonly path: string; readonly stands_for?: PartRanges | undefined }

/** Whether the rows of a former shard are in a compacted one. Paths are never used twice. */
export function standsFor({ path, stands_for = [] }: Compacted, former: string): boolean {
  const { folder, part } = placeOf(former)
  return folder === placeOf(path).folder && stands_for.some(([first, last]) => first <= part && part <= last)
}

/** `credentials/part-00012.parquet`: part 12 of `credentials` */
export function placeOf(path: string): { readonly folder: string; readonly part: number } {
  const [, folder = '', part = 0] = /^(.*)\/part-(\d+)\.[^/]*$/.exec(path) ?? []
  return { folder, part: Number(part) }
}

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
