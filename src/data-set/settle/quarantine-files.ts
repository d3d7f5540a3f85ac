import { ExportError, type OwnedStore, sideBySide } from '../../core/index.ts'
import { QUARANTINE_FOLDER, quarantinePath, writeQuarantine } from '../../load/index.ts'
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
