import { createHash } from 'node:crypto'
import { ExportError, type OwnedStore } from '../core/index.ts'
import type { RejectedItem } from '../rows/index.ts'

/** One line of `_quarantine/*.jsonl`. */
export type QuarantinedItem = Omit<RejectedItem, 'at'> & {
  readonly partition: string
  /** The number of its page in the chain, from 1, as in messages. */
  readonly page: number
}

export function quarantineLines(items: readonly QuarantinedItem[]): Uint8Array {
  return Buffer.from(items.map((item) => `${JSON.stringify(item)}\n`).join(''))
}

/**
 * Keeps the first `end` bytes, unless a user has removed the file, and adds lines. @returns its size
 * @throws ExportError `damaged` if it has lost a part of them, and lines are added
 */
export async function writeQuarantine(
  store: OwnedStore,
  partition: string,
  end: number,
  lines: readonly Uint8Array[],
): Promise<number> {
  const path = quarantinePath(partition)
  const kept = end === 0 ? null : await store.read(path, 0, end)
  if (kept !== null && kept.byteLength < end && lines.length > 0)
    throw new ExportError({
      kind: 'damaged',
      what: 'The quarantine file has lost a part of its items',
      where: path,
      next: 'Restore it, or move it away to begin another one, then run again.',
    })
  const chunks = [kept ?? new Uint8Array(), ...lines]
  const size = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0)
  if (size === 0) await store.remove(path)
  else if ((await store.size(path)) !== size || lines.length > 0) await store.replace(path, chunks)
  return size
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
