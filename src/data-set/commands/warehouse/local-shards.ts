import { randomBytes } from 'node:crypto'
import type { Pipeline, Store } from '../../../core/index.ts'
import { diskStore } from '../../../disk/index.ts'
import { temporaryFolder } from '../../../state/index.ts'

type LocalShards = {
  /** Absolute path of the folder that paths are relative to. */
  readonly root: string
  readonly store: Store
  /** Makes a shard available. Idempotent. @throws the signal's reason */
  download(path: string): Promise<void>
  release(path: string): Promise<void>
  close(): Promise<void>
}

/** The files themselves, or copies in a private temporary folder. @param stop ends a copy in progress */
export async function localShards(
  { load: { location } }: Pipeline,
  store: Store,
  stop: AbortSignal,
): Promise<LocalShards> {
  if (location.kind === 'disk') {
    const nothing = async (): Promise<void> => {}
    return { root: location.root, store, download: nothing, release: nothing, close: nothing }
  }
  const folder = await temporaryFolder()
  const copies = await diskStore({ root: folder.path, fileMode: 0o600, dirMode: 0o700 }).own(
    randomBytes(6).toString('hex'),
  )
  return {
    root: folder.path,
    store: copies,
    async download(path) {
      stop.throwIfAborted()
      // The reader of the copy reports what is missing.
      if ((await copies.size(path)) !== null || (await store.size(path)) === null) return
      const chunks = async function* (): AsyncGenerator<Uint8Array> {
        for await (const chunk of store.stream(path)) {
          stop.throwIfAborted()
          yield chunk
        }
      }
      await copies.create(path, chunks())
    },
    release: (path) => copies.remove(path),
    close: () => folder.remove(),
  }
}
