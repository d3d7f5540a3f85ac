import type { OwnedStore } from '../../core/index.ts'
import { quarantinePath } from '../../load/index.ts'
import {
  entriesOfManifest,
  hasEnded,
  type Journal,
  type JournalEntry,
  type Manifest,
  stateOfManifest,
} from '../../state/index.ts'
import { invalidationOf, redoEntry } from '../redo/invalidate.ts'

/** In one commit: a partition that is only in part in shards is exported again, a feed is read from its beginning. */
export async function restore(store: OwnedStore, journal: Journal, manifest: Manifest): Promise<void> {
  const state = stateOfManifest(manifest)
  const inShards = new Set(manifest.shards.flatMap(({ partitions }) => partitions))
  const again = new Set<string>()
  for (const [key, folded] of state.partitions) {
    if (key.startsWith('feed.') || !hasEnded(folded)) again.add(key)
  }
  const entries: JournalEntry[] = []
  for (const entry of entriesOfManifest(manifest)) {
    if (entry.kind !== 'partition') entries.push(entry)
    else if (!again.has(entry.partition) || inShards.has(entry.partition))
      entries.push({
        ...entry,
        quarantine_end: await quarantineEnd(store, entry.partition, entry.quarantined),
      })
  }
  const seed = { partitions: [...again].filter((key) => inShards.has(key)), shards: [] }
  if (seed.partitions.length > 0) entries.push(redoEntry(invalidationOf(state, seed)))
  await journal.commit(entries)
}

async function quarantineEnd(store: OwnedStore, partition: string, items: number): Promise<number> {
  if (items === 0) return 0
  const bytes = Buffer.from((await store.read(quarantinePath(partition))) ?? [])
  let end = 0
  for (let item = 0; item < items; item++) {
    const next = bytes.indexOf('\n', end) + 1
    if (next === 0) break
    end = next
  }
  return end
}
