import { nullIf, type Store } from '../core/index.ts'
import { partOf } from '../load/index.ts'

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
