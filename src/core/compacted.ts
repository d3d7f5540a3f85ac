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
