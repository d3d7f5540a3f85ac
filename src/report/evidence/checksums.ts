import type { Manifest } from '../../state/index.ts'

/** What `sha256sum --check` reads in the folder of a data set: a line for every shard, in the manifest's order. */
export function checksumLines({ shards }: Manifest): string {
  return shards.map(({ sha256, path }) => `${sha256}  ${path}\n`).join('')
}

/** Makes the same lines of the manifest, which has a shard a line, with what every system has. */
export const CHECKSUMS_OF_MANIFEST = String.raw`sed -n 's/^    {"path":"\([^"]*\)",.*"sha256":"\([0-9a-f]\{64\}\)".*/\2  \1/p' _manifest.json`
