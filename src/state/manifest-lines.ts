/**
 * How readers that know no JSON find their way through a manifest: SQL engines, `sed`. The identity of the data set has a
 * line, and each shard has one, which begins with its path. However lines are indented, they are the same.
 *
 * Regular expressions with one group, in what POSIX (extended), RE2 and Java have in common, without a backslash.
 */
export const MANIFEST_LINES = {
  dataSet: '^[^"{]*"data_set_id": *"([^"]+)"',
  path: '^[^"{]*[{]"path":"([^"]+)"',
  // Further on in the line of a shard.
  rows: '"rows":([0-9]+)',
  sha256: '"sha256":"([0-9a-f]+)"',
  /** As JSON. */
  partitions: '"partitions":([^{}]*),"imported_at"',
} as const

/** Prints a line for each shard of a manifest, as `sha256sum --check` reads it. */
export const SHA256SUMS_OF_MANIFEST = `sed -nE 's/${MANIFEST_LINES.path}.*${MANIFEST_LINES.sha256}.*/\\2  \\1/p' _manifest.json`

type ShardOfLine = {
  readonly path: string
  readonly rows: number
  readonly sha256: string
  readonly partitions: readonly string[]
  readonly imported_at: unknown
}

/** The line of a shard. */
export function shardLine(shard: ShardOfLine): string {
  return `    ${JSON.stringify(shard)}`
}

/** The lines that {@link MANIFEST_LINES} find, for engines that cannot read the file. */
export function manifestLines({
  data_set_id,
  shards,
}: {
  readonly data_set_id: string
  readonly shards: readonly ShardOfLine[]
}): readonly string[] {
  const listed = shards.map(({ path, rows, sha256, partitions }) =>
    shardLine({ path, rows, sha256, partitions, imported_at: null }),
  )
  return [`  "data_set_id": ${JSON.stringify(data_set_id)}`, ...listed]
}
