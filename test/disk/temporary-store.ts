import { join } from 'node:path'
import type { OwnedStore, Store } from '../../src/core/index.ts'
import { diskStore } from '../../src/disk/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'

export type TemporaryStore = { readonly store: Store; readonly root: string }

/** A store in a folder that does not exist yet. */
export function temporaryStore(): TemporaryStore {
  const root = join(scratchFolder(), 'data')
  return { root, store: storeAt(root) }
}

export function storeAt(root: string): Store {
  return diskStore({ root, fileMode: 0o600, dirMode: 0o700 })
}

let owners = 0

export function newOwner(): string {
  return (++owners).toString(16).padStart(12, 'a')
}

/** Does work as an owner that takes nothing over. */
export async function asOwner<T>(store: Store, work: (own: OwnedStore) => Promise<T>): Promise<T> {
  const own = await store.own(newOwner())
  try {
    return await work(own)
  } finally {
    await own.release()
  }
}

/** Replaces a file as an owner that takes nothing over. */
export function write(
  store: Store,
  path: string,
  ...chunks: readonly (string | Uint8Array)[]
): Promise<void> {
  return asOwner(store, (own) => own.replace(path, chunks))
}
