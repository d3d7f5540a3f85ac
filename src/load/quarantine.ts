import { createHash } from 'node:crypto'
import type { RefusedItem, Store } from '../core/index.ts'

/** One line of `_quarantine/*.jsonl`. */
export type QuarantinedItem = Omit<RefusedItem, 'at'> & {
  /** Key of the partition. */
  readonly partition: string
  /** Number of pages of its chain before this one. */
  readonly page: number
}

/**
 * Appends a page's rejected items to the partition's quarantine file, after its first `end` bytes, which are committed.
 * Later bytes, left by a crash, are cut off.
 * @returns the new end
 */
export async function appendQuarantine(
  store: Store,
  partition: string,
  end: number,
  items: readonly QuarantinedItem[],
): Promise<number> {
  const path = quarantinePath(partition)
  // A user may have removed the file.
  const log = await store.openSmallLog(path, (await store.size(path)) === null ? 0 : end)
  try {
    await log.append([Buffer.from(items.map((item) => `${JSON.stringify(item)}\n`).join(''))])
    await log.fsync()
    return log.size
  } finally {
    await log.close()
  }
}

/**
 * Cuts a partition's quarantine file to its committed bytes. A crash, or a page with too many rejected items, may have
 * left more, and the page may be different when it is requested again.
 */
export async function cutQuarantine(store: Store, partition: string, end: number): Promise<void> {
  const path = quarantinePath(partition)
  const size = await store.size(path)
  if (size === null || size <= end) return
  if (end === 0) await store.remove(path)
  else await (await store.openSmallLog(path, end)).close()
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
