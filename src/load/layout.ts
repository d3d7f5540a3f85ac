import {
  kindOfRows,
  type Partition,
  type PartitionBy,
  type Resource,
  rulesOf,
  type Store,
  type Window,
  windowRange,
} from '../core/index.ts'

/**
 * The folder of a partition's shards: `credentials/query=domain.acme.com/import_window=2024-01-01`, without the levels
 * that `partition_by` leaves out. Rows that are listed have one folder.
 */
export function folderOf(
  resource: Resource,
  partition: Partition,
  partitionBy: readonly PartitionBy[],
): string {
  const parts: string[] = [kindOfRows(resource)]
  if (!hasFolders(resource)) return parts.join('/')
  if (partitionBy.includes('query')) parts.push(`query=${partition.query.name}`)
  if (partitionBy.includes('window')) parts.push(`import_window=${windowName(partition.window)}`)
  return parts.join('/')
}

/** `2024-01-01`, or `2024-01-01T060000Z` if it does not start at midnight, or `all` without windows. */
function windowName(window: Window | null): string {
  return windowRange(window).split('..', 1)[0]!
}

function hasFolders(resource: Resource): boolean {
  return rulesOf(resource).reading !== 'list'
}

/** Whether each folder holds rows of one partition only. */
export function ownsFolder(resource: Resource, partitionBy: readonly PartitionBy[]): boolean {
  return hasFolders(resource) && partitionBy.includes('query') && partitionBy.includes('window')
}

/** `<folder>/part-00000.parquet` */
export function shardPath(folder: string, part: number, extension: string): string {
  return `${folder}/part-${String(part).padStart(5, '0')}${extension}`
}

/** The number in a shard's file name, or null when the name is not a shard's. */
export function partOf(name: string): number | null {
  const match = /^part-(\d{5,})\.(?:parquet|csv|csv\.gz)$/.exec(name)
  return match === null ? null : Number(match[1])
}

export const SEALED_FOLDER = '_state/sealed'

/** A sealed shard until it is published. The digest tells it from what a former owner may leave under its number. */
export function sealedPath(shard: number, sha256: string): string {
  return `${SEALED_FOLDER}/${shard}.${sha256.slice(0, 16)}`
}

/** Names of the sealed shards that are not published. */
export async function listSealed(store: Store): Promise<readonly string[]> {
  return (await store.list(SEALED_FOLDER)).filter((name) => /^\d+\.[0-9a-f]{16}$/.test(name))
}
