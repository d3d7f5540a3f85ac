import type { Pipeline, Store } from '../../core/index.ts'
import { diskStore } from '../../disk/index.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Shards as files of this machine, for what reads nothing else. */
export type LocalShards = {
  /** Absolute path of the folder that paths are relative to. */
  readonly root: string
  readonly store: Store
  /** Has a shard there; twice does no harm. @throws the signal's reason */
  bring(path: string): Promise<void>
  /** It is needed no longer. */
  drop(path: string): Promise<void>
  close(): Promise<void>
}

/**
 * Those of a data set: where they are, or copies in a private folder for temporary files.
 * @param store of the data set
 * @param stop ends a copy that is under way
 */
export async function localShards(
  { load: { place: location } }: Pipeline,
  store: Store,
  stop: AbortSignal,
): Promise<LocalShards> {
  if (location.kind === 'disk') {
    const nothing = async (): Promise<void> => {}
    return { root: location.root, store, bring: nothing, drop: nothing, close: nothing }
  }
  const folder = await temporaryFolder()
  const copies = diskStore({ root: folder.path, fileMode: 0o600, dirMode: 0o700 })
  return {
    root: folder.path,
    store: copies,
    async bring(path) {
      stop.throwIfAborted()
      // The reader of the copy reports what is missing.
      if ((await copies.size(path)) !== null || (await store.size(path)) === null) return
      const passing = `${path}.part`
      const log = await copies.openLog(passing, 0)
      try {
        for await (const chunk of store.stream(path)) {
          stop.throwIfAborted()
          await log.append([chunk])
        }
      } finally {
        await log.close()
      }
      await copies.publish(passing, path)
    },
    drop: (path) => copies.remove(path),
    close: () => folder.remove(),
  }
}
