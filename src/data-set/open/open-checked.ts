import type { OwnedStore } from '../../core/index.ts'
import { changedSinceSealed, quarantinePath } from '../../load/index.ts'
import {
  beginCheckpoint,
  type CheckpointState,
  entriesOfManifest,
  type HeaderEntry,
  hasEnded,
  headerOfManifest,
  isRedone,
  Journal,
  type JournalEntry,
  type Manifest,
  type SealedShard,
} from '../../state/index.ts'
import { invalidationOf, redoEntry } from '../redo/invalidate.ts'
import { publishCommitted, removeSealed, unmark } from '../settle/publish.ts'
import { clearDataSet } from './clear-data-set.ts'
import { findState, requireSuppression } from './find-state.ts'
import { requireShards } from './look.ts'

/**
 * Opens a checkpoint, or begins one, and claims it; sealed shards get their final names. Every change comes this way.
 * @param accept refuses a state before anything is changed, or gives the shards that go and need not be whole
 * @returns null: nothing has begun, and there is no header
 * @throws ExportError `damaged` when a shard is missing or short, `config` when there is more; only `_SUCCESS` goes then
 */
export async function openChecked<Header extends HeaderEntry | null>(
  store: OwnedStore,
  header: Header,
  accept: (found: CheckpointState) => Promise<readonly number[]> = async () => [],
): Promise<Journal | (Header & null)> {
  for (;;) {
    const known = await findState(store)
    if (known === null) {
      await clearDataSet(store)
      continue
    }
    const { found, manifest, state: before } = known
    const goes = before === null ? [] : await accept(before)
    if (before === null) await requireShards(store, null, () => true)
    if (before === null && header === null) return header as Header & null
    await requireSuppression(store, known)
    if (found === null) {
      await beginCheckpoint(store, manifest === null ? header! : headerOfManifest(manifest))
      continue
    }
    const journal = await Journal.open(store, found)
    if (journal === null) continue
    try {
      const lost = manifest === null ? null : { manifest, listed: before! }
      await bring(store, journal, goes, lost)
      return journal
    } catch (error) {
      await journal.refuse()
      throw error
    }
  }
}

/** The manifest in the place of a checkpoint, and the state that it tells. */
type Lost = { readonly manifest: Manifest; readonly listed: CheckpointState }

async function bring(
  store: OwnedStore,
  journal: Journal,
  accepted: readonly number[],
  lost: Lost | null,
): Promise<void> {
  const onRefused = () => unmark(store)
  if (lost !== null) {
    await requireShards(store, lost.listed, () => true, onRefused)
    await restore(store, journal, lost)
  }
  const { state } = journal
  const goes = new Set(accepted)
  const mayMiss = (shard: SealedShard): boolean => goes.has(shard.shard) || isRedone(state, shard)
  await requireShards(store, state, mayMiss, onRefused)
  await publishCommitted(store, state, (changed) => {
    const lost = changed.find((each) => each.rows > 0 && !mayMiss(each))
    // Readers take what is published for whole.
    if (lost !== undefined) throw changedSinceSealed(lost)
  })
  await removeSealed(store, state)
  await journal.sweep()
}

/** In one commit: a partition that is only in part in shards is exported again, a feed is read from its beginning. */
async function restore(
  store: OwnedStore,
  journal: Journal,
  { manifest, listed: state }: Lost,
): Promise<void> {
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
