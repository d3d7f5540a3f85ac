import { createHash } from 'node:crypto'
import {
  kindOfRows,
  type Partition,
  type PartitionBy,
  type Resource,
  rulesOf,
  type Store,
  windowRange,
} from '../core/index.ts'

/** `credentials/query=domain.acme.com/import_window=2024-01-01`, without the levels that `partition_by` leaves out. */
export function folderOf(
  resource: Resource,
  partition: Partition,
  partitionBy: readonly PartitionBy[],
): string {
  const parts: string[] = [kindOfRows(resource)]
  if (!hasFolders(resource)) return parts.join('/')
  if (partitionBy.includes('query')) parts.push(`query=${partition.query.name}`)
  // `2024-01-01`, or `2024-01-01T060000Z` if it does not start at midnight, or `all` without windows.
  if (partitionBy.includes('window'))
    parts.push(`import_window=${windowRange(partition.window).split('..', 1)[0]}`)
  return parts.join('/')
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

export function partOf(name: string): number | null {
  const match = /^part-(\d{5,})\.(?:parquet|csv|csv\.gz)$/.exec(name)
  return match === null ? null : Number(match[1])
}

export const SEALED_FOLDER = '_state/sealed'

/** A sealed shard until it is published. The digest tells it from what a former owner may leave under its number. */
export function sealedPath(shard: number, sha256: string): string {
  return `${SEALED_FOLDER}/${shard}.${sha256.slice(0, 16)}`
}

export async function listSealed(store: Store): Promise<readonly string[]> {
  return (await store.list(SEALED_FOLDER)).filter((name) => /^\d+\.[0-9a-f]{16}$/.test(name))
}

export const QUARANTINE_FOLDER = '_quarantine'

// File systems allow 255 bytes per name. A longer key is cut, and a digest of the whole key is appended.
const MAX_NAME = 200

/** `_quarantine/domain.acme.com~2024-01-01..2024-02-01.jsonl` */
export function quarantinePath(partition: string): string {
  const name = partition.replaceAll('/', '~')
  if (name.length <= MAX_NAME) return `${QUARANTINE_FOLDER}/${name}.jsonl`
  const digest = createHash('sha256').update(partition).digest('hex').slice(0, 16)
  return `${QUARANTINE_FOLDER}/${name.slice(0, MAX_NAME - 17)}~${digest}.jsonl`
}
