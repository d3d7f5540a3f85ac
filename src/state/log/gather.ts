import { type BlobRef, type JournalEntry, sideBySide } from '../../core/index.ts'
import { blobsNeeded, type CheckpointState } from '../checkpoint/checkpoint-state.ts'
import type { CommitPart } from './commit-object.ts'

/** With fewer objects than this a resume is quick enough. */
const MAX_OBJECTS = 1000
/** An object that holds more than that is worth reading by itself. */
const SMALL_BYTES = 64 << 10
const COMMIT_BYTES = 8 << 20

/**
 * Commits that gather the small record batches and ids of many objects, so that these are no longer needed: after
 * 20,000 chains of three rows each a resume would read 20,000 objects. None if there are few objects.
 */
export async function* gatherings(
  state: CheckpointState,
  read: (ref: BlobRef) => Promise<Uint8Array | null>,
): AsyncGenerator<CommitPart> {
  /** Small objects, and how many bytes of each are needed. */
  const objects = new Map<number, number>()
  for (const { sequence, bytes } of blobsNeeded(state)) {
    objects.set(sequence, (objects.get(sequence) ?? 0) + bytes)
  }
  const isSmall = ({ sequence }: BlobRef): boolean => objects.has(sequence)
  for (const [sequence, bytes] of objects) if (bytes >= SMALL_BYTES) objects.delete(sequence)
  if (objects.size <= MAX_OBJECTS) return
  let entries: JournalEntry[] = []
  let blobs: Uint8Array[] = []
  let bytes = 0
  const gather = async (refs: readonly BlobRef[]): Promise<(number | null)[] | null> => {
    const moved: (number | null)[] = refs.map(() => null)
    await sideBySide(refs.entries(), async ([i, ref]) => {
      // What is lost or changed stays where it is: the next resume invalidates what depends on it.
      const blob = isSmall(ref) ? await read(ref) : null
      if (blob === null) return
      moved[i] = blobs.push(blob) - 1
      bytes += blob.byteLength
    })
    return moved.some((blob) => blob !== null) ? moved : null
  }
  const isFull = (): boolean => bytes >= COMMIT_BYTES
  const take = (): CommitPart => {
    const part = { entries, blobs }
    entries = []
    blobs = []
    bytes = 0
    return part
  }
  // Copies, because each commit changes the state.
  for (const { shard, records } of [...state.openShards.values()]) {
    const moved = await gather(records.map(({ at }) => at))
    if (moved !== null) entries.push({ kind: 'gathered', shard, blobs: moved })
    if (isFull()) yield take()
  }
  for (const { chain, ids } of [...state.chains.values()]) {
    const moved = await gather(ids)
    if (moved !== null) entries.push({ kind: 'gathered', chain, blobs: moved })
    if (isFull()) yield take()
  }
  if (entries.length > 0) yield take()
}
