import type { Manifest } from './manifest.ts'

/** Finds a manifest's lines without JSON, in POSIX (extended), RE2 and Java: one group, no backslash, any indent. */
export const MANIFEST_LINES = {
  dataSet: '^[^"{]*"data_set_id": *"([^"]+)"',
  path: '^[^"{]*[{]"path":"([^"]+)"',
  // Further on in the line of a shard.
  rows: '"rows":([0-9]+)',
  sha256: '"sha256":"([0-9a-f]+)"',
  /** As JSON. */
  partitions: '"partitions":([^{}]*),"imported_at"',
  schema: '"schema":([0-9]+)',
} as const

/** Prints a line for each shard of a manifest, as `sha256sum --check` reads it. */
export const SHA256SUMS_OF_MANIFEST = `sed -nE 's/${MANIFEST_LINES.path}.*${MANIFEST_LINES.sha256}.*/\\2  \\1/p' _manifest.json`

export function shardLine(shard: object): string {
  return `    ${JSON.stringify(shard)}`
}

/** The lines that {@link MANIFEST_LINES} find, for engines that cannot read the file. */
export function manifestLines(manifest: Pick<Manifest, 'data_set_id' | 'shards'>): readonly string[] {
  const listed = manifest.shards.map(({ path, rows, sha256, partitions, schema }) =>
    shardLine({ path, rows, sha256, partitions, imported_at: null, schema: schema || undefined }),
  )
  return [`  "data_set_id": ${JSON.stringify(manifest.data_set_id)}`, ...listed]
}
