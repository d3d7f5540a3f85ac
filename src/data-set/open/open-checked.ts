import type { OwnedStore } from '../../core/index.ts'
import { changedSinceSealed } from '../../load/index.ts'
import {
  beginCheckpoint,
  type CheckpointState,
  type HeaderEntry,
  headerOfManifest,
  isRedone,
  Journal,
  type Manifest,
  type SealedShard,
} from '../../state/index.ts'
import { publishCommitted, removeSealed } from '../settle/publish.ts'
import { unmark } from '../settle/success-mark.ts'
import { finishClearing } from './clear-data-set.ts'
import { findState, requireSuppression } from './find-state.ts'
import { requireShards } from './look.ts'
import { restore } from './restore.ts'

/**
 * Opens a checkpoint, or begins one, and claims it; sealed shards get their final names. Every change comes this way.
 * @param accept refuses a state before anything is changed, or gives the shards that go and need not be whole
 * @returns null: nothing has begun, and there is no header
 * @throws ExportError `damaged` when a shard is missing or short, `config` when there is more; only `_SUCCESS` goes then
 */
export async function openChecked<Header extends HeaderEntry | null>(
  store: OwnedStore,
  header: Header,
  accept: (found: CheckpointState | null) => Promise<readonly number[]> = async () => [],
): Promise<Journal | (Header & null)> {
  for (;;) {
    const { found, manifest, state: before, isClearing } = await findState(store)
    if (isClearing) {
      await finishClearing(store)
      continue
    }
    const goes = await accept(before)
    if (before === null) await requireShards(store, null, () => true)
    if (before === null && header === null) return header as Header & null
    await requireSuppression(store, { manifest, state: before })
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

async function bring(
  store: OwnedStore,
  journal: Journal,
  accepted: readonly number[],
  lost: { readonly manifest: Manifest; readonly listed: CheckpointState } | null,
): Promise<void> {
  const onRefused = () => unmark(store)
  if (lost !== null) {
    await requireShards(store, lost.listed, () => true, onRefused)
    await restore(store, journal, lost.manifest)
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
