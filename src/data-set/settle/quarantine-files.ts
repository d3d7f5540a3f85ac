import { ExportError, type OwnedStore, sideBySide } from '../../core/index.ts'
import { QUARANTINE_FOLDER, quarantinePath } from '../../load/index.ts'
import {
  type BlobRef,
  type CheckpointState,
  type Journal,
  type JournalEntry,
  splitPath,
} from '../../state/index.ts'

/** Items that wait in the log get into their files, and no file has others than those that are committed. */
export async function bringQuarantine(store: OwnedStore, journal: Journal): Promise<void> {
  const { state } = journal
  const entries: JournalEntry[] = []
  await sideBySide(state.rejected, async ([partition, refs]) => {
    const lines = await Promise.all(refs.map((ref) => linesIn(journal, ref)))
    const end = state.partitions.get(partition)?.quarantineEnd ?? 0
    const size = await writeQuarantine(store, partition, end, lines)
    entries.push({ kind: 'quarantined', partition, blobs: refs.length, end: size })
  })
  await journal.append(entries)
  const files = await filesOf(store, state)
  const others = await store.mismatches([...files].map(([path, { end }]) => ({ path, bytes: end })))
  await sideBySide(others, async ({ path }) => {
    const { partition, end } = files.get(path)!
    await writeQuarantine(store, partition, end, [])
  })
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

async function linesIn(journal: Journal, ref: BlobRef): Promise<Uint8Array> {
  const lines = await journal.read(ref)
  if (lines !== null) return lines
  throw new ExportError({
    kind: 'damaged',
    what: `Rejected items in file ${ref.file} of the log are lost or changed`,
    where: '_state/log',
    next: 'Check the disk and run again: the partitions concerned are exported anew.',
  })
}

async function filesOf(store: OwnedStore, { partitions }: CheckpointState) {
  const files = new Map<string, { readonly partition: string; readonly end: number }>()
  const names = new Set(await store.list(QUARANTINE_FOLDER))
  for (const [partition, { quarantineEnd: end }] of names.size === 0 ? [] : partitions) {
    const path = quarantinePath(partition)
    if (names.has(splitPath(path)[1])) files.set(path, { partition, end })
  }
  return files
}
