import { type Partition, type PartitionBy, type Resource, windowName } from '../core/index.ts'

/**
 * The folder of a partition's shards: `credentials/query=domain.acme.com/import_window=2024-01-01`, without the levels
 * that `partition_by` leaves out. Reports are one table and have one folder.
 */
export function folderOf(
  resource: Resource,
  partition: Partition,
  partitionBy: readonly PartitionBy[],
): string {
  if (resource === 'reports') return resource
  const parts: string[] = [resource]
  if (partitionBy.includes('query')) parts.push(`query=${partition.query.name}`)
  if (partitionBy.includes('window')) parts.push(`import_window=${windowName(partition.window)}`)
  return parts.join('/')
}

/** Whether each folder holds rows of one partition only. */
export function ownsFolder(resource: Resource, partitionBy: readonly PartitionBy[]): boolean {
  return resource === 'credentials' && partitionBy.includes('query') && partitionBy.includes('window')
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

export const OPEN_FOLDER = '_state/open'

/** The bytes of a shard while it is being written. */
export function openShardPath(shard: number): string {
  return `${OPEN_FOLDER}/${shard}.part`
}

/** The write-ahead log of an open shard. Its generations alternate between two files. */
export function openLogPath(shard: number, generation: number): string {
  return `${OPEN_FOLDER}/${shard}.${generation % 2}.log`
}
