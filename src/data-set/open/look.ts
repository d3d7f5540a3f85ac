import {
  type ExpectedStat,
  ExportError,
  nullIf,
  numberOf,
  ROW_FOLDERS,
  type Store,
  sideBySide,
} from '../../core/index.ts'
import { partOf, sealedPath } from '../../load/index.ts'
import {
  type CheckpointState,
  isRedone,
  readManifest,
  type SealedShard,
  splitPath,
} from '../../state/index.ts'

/** A shard that does not stand under its final name. @param size of what does; null: nothing */
type Missing = { readonly shard: SealedShard; readonly size: number | null }

type Look = {
  /** Shards that are neither under their final names with their sizes, nor sealed. */
  readonly missing: readonly Missing[]
  /** Files that readers would take for shards, and that nothing names. */
  readonly strangers: readonly string[]
}

async function look(store: Store, state: CheckpointState | null): Promise<Look> {
  const different = new Set(
    state === null ? ROW_FOLDERS : (await store.mismatches(expected(state))).map(({ path }) => path),
  )
  if (different.size === 0) return { missing: [], strangers: [] }
  // Another file may be there in place of one that is not.
  const missing: Missing[] = []
  const suspects: SealedShard[] = []
  for (const shard of state?.shards ?? []) if (different.has(shard.path)) suspects.push(shard)
  await sideBySide(suspects, async (shard) => {
    const size = await store.size(shard.path)
    if (size === shard.bytes || (size === null && (await isSealed(store, shard)))) return
    // A run may have published it between the two stats.
    if (size !== null || (await store.size(shard.path)) !== shard.bytes) missing.push({ shard, size })
  })
  missing.sort((a, b) => (a.shard.path < b.shard.path ? -1 : 1))
  return { missing, strangers: await strangersIn(store, state, different) }
}

function* expected(state: CheckpointState): Generator<ExpectedStat> {
  for (const { path, bytes } of state.shards) yield { path, bytes }
  const absent = new Map(state.goneFrom)
  for (const { folder } of state.openShards.values()) absent.set(folder, (absent.get(folder) ?? 0) + 1)
  const above = new Map<string, number>(ROW_FOLDERS.map((folder) => [folder, 0]))
  for (const [folder, parts] of state.partsOf) {
    const there = parts - (absent.get(folder) ?? 0)
    if (there <= 0) continue
    yield { path: folder, names: there }
    if (!above.delete(folder)) countAbove(folder)
  }
  for (const [path, names] of above) yield { path, names }

  function countAbove(path: string): void {
    const [folder] = splitPath(path)
    const names = above.get(folder)
    above.set(folder, (names ?? 0) + 1)
    if (names === undefined) countAbove(folder)
  }
}

async function strangersIn(
  store: Store,
  state: CheckpointState | null,
  different: ReadonlySet<string>,
): Promise<readonly string[]> {
  const strangers: string[] = []
  let known: Set<string> | null = null
  const folders = new Set(Array.from(different, (path) => path.split('/', 1)[0]))
  for (const folder of ROW_FOLDERS) {
    if (!folders.has(folder)) continue
    for await (const path of rowFiles(store, folder)) {
      known ??= new Set([
        ...(state?.invalidated ?? []),
        ...[...(state?.shards ?? [])].map(({ path }) => path),
      ])
      if (!known.has(path) && LIKE_A_SHARD.test(path)) strangers.push(path)
    }
  }
  return strangers
}

async function isSealed(store: Store, { shard, sha256, bytes }: SealedShard): Promise<boolean> {
  return (await store.size(sealedPath(shard, sha256))) === bytes
}

/**
 * @param mayMiss whether a shard may be missing or short; default: what is exported again
 * @throws ExportError `damaged` when another one is, `config` when there is more
 */
export async function requireShards(
  store: Store,
  state: CheckpointState | null,
  mayMiss: (shard: SealedShard) => boolean = (shard) => isRedone(state!, shard),
  onRefused: () => Promise<void> = async () => {},
): Promise<Look> {
  const seen = await look(store, state)
  const missing = withRows(seen).find(({ shard }) => !mayMiss(shard))
  if (missing !== undefined || seen.strangers.length > 0) await onRefused()
  if (missing !== undefined) throw missingShard(missing)
  if (seen.strangers.length > 0) throw await strangersFound(store, seen.strangers, state)
  return seen
}

/** One without rows is made again by `settle`. */
export function withRows({ missing }: Look): readonly Missing[] {
  return missing.filter(({ shard }) => shard.rows > 0)
}

function missingShard({ shard: { path, bytes, partitions }, size }: Missing): ExportError {
  return new ExportError({
    kind: 'damaged',
    what:
      size === null ? 'A shard is missing' : `A shard holds ${numberOf(size, 'byte')} instead of ${bytes}`,
    where: path,
    next: `Restore it (it holds rows that are paid for), or export it again: \`run --redo ${partitions[0]}\`; \`verify\` prints the command for all that is damaged. Nothing else was changed.`,
  })
}

const MAX_NAMED = 5

async function strangersFound(
  store: Store,
  strangers: readonly string[],
  state: CheckpointState | null,
): Promise<ExportError> {
  const manifest = state === null ? null : await readManifest(store).catch(nullIf())
  const listed = new Set(manifest?.shards.map(({ path }) => path))
  const older = strangers.find((path) => listed.has(path))
  if (older !== undefined)
    return new ExportError({
      kind: 'config',
      what: 'The manifest names a shard that the checkpoint does not know: _state is older than the data set',
      where: older,
      next: 'Restore the newer _state, or move _state/checkpoint.jsonl away: the next command goes on from the manifest. Nothing was changed.',
    })
  const [first = '', ...others] = strangers
  const named = others.slice(0, MAX_NAMED - 1)
  const more = others.length > named.length ? ` and ${others.length - named.length} more` : ''
  const also = named.length > 0 ? ` So are ${named.join(', ')}${more}.` : ''
  return new ExportError({
    kind: 'config',
    what:
      state === null
        ? 'There is a file among the folders of rows, and neither _manifest.json nor _state to name it'
        : 'A file among the shards is named by nothing: readers would take its rows for data',
    where: first,
    next:
      state === null
        ? `Restore _manifest.json from a backup, name another load.path, or start over with \`run --fresh\`, which moves it to _state/orphans.${also}`
        : `Move it out of the data set (a file manager or a sync tool may have copied it), then try again. Nothing was changed.${also}`,
  })
}

/** Names that patterns of readers end with: such a file is counted as rows. */
export const LIKE_A_SHARD = /\.(?:parquet|csv)(?:\.(?:gz|zst|bz2|snappy))?$/i

/** Files that readers may take for shards: some engines read all but those that begin with `.` or `_`. */
export async function* rowFiles(store: Store, folder: string): AsyncGenerator<string> {
  for (const name of await store.list(folder)) {
    // No shard is looked at twice: there may be half a million.
    if (partOf(name) !== null) yield `${folder}/${name}`
    else if (!/^[._]/.test(name)) yield* filesAt(store, `${folder}/${name}`)
  }
}

export async function* filesAt(store: Store, path: string): AsyncGenerator<string> {
  // null: for example a symbolic link, which readers follow.
  const names = await store.list(path).catch(nullIf('storage'))
  if (names !== null && names.length > 0) yield* rowFiles(store, path)
  // An empty folder cannot be read.
  else if (names === null || (await store.read(path, 0, 1).catch(nullIf('storage'))) !== null) yield path
}
