import type { OwnedStore, Store } from '../../core/index.ts'

/** Empty. It is there only while everything that the file plans is exported. */
export const SUCCESS_PATH = '_SUCCESS'

export async function isMarked(store: Store): Promise<boolean> {
  return (await store.size(SUCCESS_PATH)) !== null
}

export async function mark(store: OwnedStore): Promise<void> {
  if (!(await isMarked(store))) await store.replace(SUCCESS_PATH, [])
}

/** In a bucket a delete that is late could remove what the next owner has written, so none is sent without need. */
export async function unmark(store: OwnedStore): Promise<void> {
  if (await isMarked(store)) await store.remove(SUCCESS_PATH)
}
