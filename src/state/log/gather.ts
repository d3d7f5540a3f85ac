import { sideBySide } from '../../core/index.ts'
import { blobsNeeded, type CheckpointState } from '../checkpoint/checkpoint-state.ts'
import type { BlobRef } from '../commit-log.ts'
import type { GatheredEntry, JournalEntry } from '../journal-entry.ts'
import type { CommitPart } from './commit.ts'

/** As many small files stay where they are. A feed leaves one with each page of each run, for ever. */
const MAX_FILES = 4
/** A file is small when fewer of its bytes than these are still needed. */
const SMALL_BYTES = 64 << 10
const COMMIT_BYTES = 8 << 20

/** Where bytes belong, where they are, and which of them are moved. */
type Held = {
  readonly of: Omit<GatheredEntry, 'kind' | 'blobs'>
  readonly refs: readonly BlobRef[]
  readonly moving: ReadonlySet<BlobRef>
}

/** A commit, and where its bytes were before, in their order. */
type Gathering = CommitPart & { readonly from: readonly BlobRef[] }

/**
 * Small files whose bytes are to be gathered: record batches, ids and rejected items. After 20,000 chains of three
 * rows each a resume would read 20,000 files of a bucket; and a few rejected items would keep a page's file for as long as the
 * run goes on. None if there are few such files.
 */
export function smallFiles(state: CheckpointState): ReadonlySet<number> {
  const needed = new Map<number, number>()
  for (const { file, bytes } of blobsNeeded(state)) needed.set(file, (needed.get(file) ?? 0) + bytes)
  const small = new Set([...needed].flatMap(([file, bytes]) => (bytes < SMALL_BYTES ? file : [])))
  return small.size <= MAX_FILES ? new Set() : small
}

/** Commits with what is still needed of some files. */
export async function* gatherings(
  state: CheckpointState,
  isMoving: (file: number) => boolean,
  read: (ref: BlobRef) => Promise<Uint8Array | null>,
): AsyncGenerator<Gathering> {
  let some: Held[] = []
  let bytes = 0
  // A copy, because each commit changes the state.
  for (const { of, refs } of [...heldBy(state)]) {
    let moving = new Set<BlobRef>()
    for (const ref of refs) {
      if (!isMoving(ref.file)) continue
      moving.add(ref)
      bytes += ref.bytes
      if (bytes < COMMIT_BYTES) continue
      yield await gathered([...some, { of, refs, moving }], read)
      some = []
      moving = new Set()
      bytes = 0
    }
    if (moving.size > 0) some.push({ of, refs, moving })
  }
  if (some.length > 0) yield await gathered(some, read)
}

function* heldBy({ openShards, chains, rejected }: CheckpointState): Generator<Omit<Held, 'moving'>> {
  for (const { shard, batches } of openShards.values())
    yield { of: { shard }, refs: batches.map(({ at }) => at) }
  for (const { chain, ids } of chains.values()) yield { of: { chain }, refs: ids }
  for (const [partition, refs] of rejected) yield { of: { partition }, refs }
}

async function gathered(
  some: readonly Held[],
  read: (ref: BlobRef) => Promise<Uint8Array | null>,
): Promise<Gathering> {
  const found = new Map<BlobRef, Uint8Array | null>()
  await sideBySide(
    some.flatMap(({ moving }) => [...moving]),
    async (ref) => void found.set(ref, await read(ref)),
  )
  const blobs: Uint8Array[] = []
  const from: BlobRef[] = []
  const entries = some.map(({ of, refs }): JournalEntry => {
    // What is lost or changed stays where it is: the next resume invalidates what depends on it.
    const moved = refs.map((ref) => {
      const blob = found.get(ref) ?? null
      if (blob === null) return null
      from.push(ref)
      return blobs.push(blob) - 1
    })
    return { kind: 'gathered', ...of, blobs: moved }
  })
  return { entries, blobs, from }
}
