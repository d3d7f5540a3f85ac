import { type ExpectedStat, ExportError, numberOf, type Store, sideBySide } from '../core/index.ts'
import { sealedPath } from '../load/index.ts'
import { type CheckpointState, type SealedShard, splitPath } from '../state/index.ts'

/** A shard that does not stand under its final name. @param size of what does; null: nothing */
export type Missing = { readonly shard: SealedShard; readonly size: number | null }

/** What lies where the shards of a checkpoint should be. */
export type Look = {
  /** Shards that are neither under their final names with their sizes, nor sealed. */
  readonly missing: readonly Missing[]
  /** Folders that hold other files than their shards. */
  readonly odd: readonly string[]
  /** Paths of the shards in these folders, also of those that are about to be removed. */
  readonly known: ReadonlySet<string>
}

/** Compares the size of every shard that the checkpoint names, and the number of files in every folder. */
export async function look(store: Store, state: CheckpointState): Promise<Look> {
  const different = await differing(store, state)
  if (different.size === 0) return { missing: [], odd: [], known: new Set() }
  // Another file may be there in place of one that is not.
  for (const { path } of state.shards) if (different.has(path)) different.add(splitPath(path)[0])
  const known = new Set(state.invalidated)
  const suspects: SealedShard[] = []
  for (const shard of state.shards) {
    if (different.has(shard.path)) suspects.push(shard)
    if (different.has(splitPath(shard.path)[0])) known.add(shard.path)
  }
  const missing: Missing[] = []
  await sideBySide(suspects, async (shard) => {
    const size = await store.size(shard.path)
    if (size === shard.bytes || (size === null && (await isSealed(store, shard)))) return
    // A run may have published it between the two stats.
    if (size !== null || (await store.size(shard.path)) !== shard.bytes) missing.push({ shard, size })
  })
  const odd = [...state.partsOf].map(([folder]) => folder).filter((folder) => different.has(folder))
  return { missing: missing.sort((a, b) => (a.shard.path < b.shard.path ? -1 : 1)), odd, known }
}

/** Paths of shards with another size, and of folders with another number of names. */
async function differing(store: Store, state: CheckpointState): Promise<Set<string>> {
  // Neither open shards are nor those exported again in their folders.
  const absent = new Map(state.goneFrom)
  const folders = [
    ...[...state.openShards.values()].map(({ folder }) => folder),
    ...[...state.redo.sealed.values()].map(({ path }) => splitPath(path)[0]),
  ]
  for (const folder of folders) absent.set(folder, (absent.get(folder) ?? 0) + 1)
  const expected = function* (): Generator<ExpectedStat> {
    for (const { path, bytes } of state.shards) yield { path, bytes }
    for (const [folder, parts] of state.partsOf)
      if (parts > 0) yield { path: folder, names: parts - (absent.get(folder) ?? 0) }
  }
  return new Set((await store.mismatches(expected())).map(({ path }) => path))
}

/** Whether a sealed shard waits to be published. */
async function isSealed(store: Store, { shard, sha256, bytes }: SealedShard): Promise<boolean> {
  return (await store.size(sealedPath(shard, sha256))) === bytes
}

/** One without rows is made again by `settle`. */
export function withRows({ missing }: Look): readonly Missing[] {
  return missing.filter(({ shard }) => shard.rows > 0)
}

export function missingShard({ shard: { path, bytes, partitions }, size }: Missing): ExportError {
  return new ExportError({
    kind: 'damaged',
    what:
      size === null ? 'A shard is missing' : `A shard holds ${numberOf(size, 'byte')} instead of ${bytes}`,
    where: path,
    next: `Restore it (it holds rows that are paid for), or export it again: \`run --redo ${partitions[0]}\`; \`verify\` prints the command for all that is damaged. Nothing else was changed.`,
  })
}
