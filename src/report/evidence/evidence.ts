import type { PartitionCounts } from '../../core/index.ts'
import type { Manifest } from '../../state/index.ts'

/** Makes the same lines of the manifest, which has a shard a line, with what every system has. */
export const CHECKSUMS_OF_MANIFEST = String.raw`sed -n 's/^    {"path":"\([^"]*\)",.*"sha256":"\([0-9a-f]\{64\}\)".*/\2  \1/p' _manifest.json`

/** What there is to show of an export that was signed. */
export type Evidence = {
  readonly manifest: Manifest
  /** As it stands on the disk, which is what was signed. */
  readonly manifestBytes: Uint8Array
  readonly signature: Uint8Array
  /** Whether there is `_SUCCESS`. */
  readonly isMarked: boolean
  /** Whether everything that the pipeline file plans was exported. */
  readonly complete: boolean
  /** Of its plan; null: not known. */
  readonly partitions: PartitionCounts | null
  /** The HTML report; null: none was made. */
  readonly report: Uint8Array | null
  /** The text that the manifest's `config_digest` is the SHA-256 of. */
  readonly settings: string
}

/** What `sha256sum --check` reads in the folder of a data set: a line for every shard, in the manifest's order. */
export function checksumLines({ shards }: Manifest): string {
  return shards.map(({ sha256, path }) => `${sha256}  ${path}\n`).join('')
}
