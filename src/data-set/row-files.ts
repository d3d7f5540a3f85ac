import { nullIf, type Store } from '../core/index.ts'
import { partOf } from '../load/index.ts'

/**
 * The files below a folder of rows that readers may take for shards: patterns match all names that end like a shard's,
 * and some engines read every file. Names that begin with `.` or `_` are skipped, as readers do.
 */
export async function* rowFiles(store: Store, folder: string): AsyncGenerator<string> {
  for (const name of await store.list(folder)) {
    // No shard is looked at twice: there may be half a million.
    if (partOf(name) !== null) yield `${folder}/${name}`
    else if (!/^[._]/.test(name)) yield* filesAt(store, `${folder}/${name}`)
  }
}

/** The file at a path, or those below the folder there. */
export async function* filesAt(store: Store, path: string): AsyncGenerator<string> {
  // null: for example a symbolic link, which readers follow.
  const names = await store.list(path).catch(nullIf('storage'))
  if (names !== null && names.length > 0) yield* rowFiles(store, path)
  // An empty folder cannot be read.
  else if (names === null || (await store.read(path, 0, 1).catch(nullIf('storage'))) !== null) yield path
}
