import { existsSync } from 'node:fs'
import { open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pipeline, Store } from '../../../core/index.ts'
import type { ColumnSpec } from '../../../rows/index.ts'
import { type Manifest, temporaryFolder } from '../../../state/index.ts'
import { dataSetRows, type ShardGroup } from '../../../warehouse/index.ts'

/** Shards that are read together: many small ones, and of a bucket no more than fit into a temporary folder. */
const MAX_SHARDS = 500
const MAX_COPIES = 32
const MAX_COPIED_BYTES = 256e6

/** Of CSV: DuckDB holds two or three buffers of this size. */
const MAX_LINE_BYTES = 1 << 24

/** Where Linux shows open files, also those whose name is gone. */
const OPEN_FILES = '/proc/self/fd'

/** Copies of what lies in a bucket go with their group. Those without a name go even if the process is killed. */
export async function* shardGroups(
  { transform, load: { location, format } }: Pipeline,
  store: Store,
  { shards }: Manifest,
  columns: readonly ColumnSpec[],
  sqlOf: (rows: string) => string,
  stop: AbortSignal,
): AsyncGenerator<ShardGroup> {
  const isMixed = transform.lacking.length > 0
  const groupOf = (root: string, files: ReadonlyMap<string, string>, paths: readonly string[]) => ({
    sql: sqlOf(dataSetRows({ root, format, isMixed }, columns, paths, MAX_LINE_BYTES)),
    files,
  })
  if (location.kind === 'disk') {
    const { root } = location
    for (let from = 0; from < shards.length; from += MAX_SHARDS) {
      const paths = shards.slice(from, from + MAX_SHARDS).map(({ path }) => path)
      yield groupOf(root, new Map(paths.map((path) => [join(root, path), path])), paths)
    }
    return
  }
  const folder = await temporaryFolder()
  try {
    for (let from = 0; from < shards.length; ) {
      const copies: Copy[] = []
      const files = new Map<string, string>()
      try {
        for (
          let bytes = 0;
          from < shards.length && copies.length < MAX_COPIES && bytes < MAX_COPIED_BYTES;
          from++
        ) {
          const shard = shards[from]!
          bytes += shard.bytes
          const copy = await copied(store, shard.path, join(folder.path, String(from)), stop)
          copies.push(copy)
          files.set(copy.path, shard.path)
        }
        yield groupOf('/', files, [...files.keys()])
      } finally {
        for (const copy of copies) await copy.remove()
      }
    }
  } finally {
    await folder.remove()
  }
}

type Copy = { readonly path: string; remove(): Promise<void> }

async function copied(store: Store, shard: string, path: string, stop: AbortSignal): Promise<Copy> {
  const file = await open(path, 'wx+', 0o600)
  const isNameless = existsSync(OPEN_FILES)
  if (isNameless) await unlink(path)
  const remove = async (): Promise<void> => {
    await file.close()
    if (!isNameless) await unlink(path)
  }
  try {
    for await (const chunk of store.stream(shard)) {
      stop.throwIfAborted()
      await file.writeFile(chunk)
    }
    return { path: isNameless ? `${OPEN_FILES}/${file.fd}` : path, remove }
  } catch (error) {
    await remove()
    throw error
  }
}
