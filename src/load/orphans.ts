import { isExportError, type OwnedStore, sideBySide } from '../core/index.ts'

/** The folder for files that are not part of the data set. Nothing is deleted there. */
export const ORPHANS = '_state/orphans'

/** Moves a file or folder that is not Spillway's, or not in the checkpoint, out of the data set. @returns its new path */
export async function moveToOrphans(store: OwnedStore, path: string): Promise<string> {
  const orphan = await unusedName(store, `${ORPHANS}/${path}`)
  await copy(store, path, orphan)
  await store.remove(path)
  return orphan
}

/** Only sealed shards are moved: a former owner could move what the present one has written since. */
async function copy(store: OwnedStore, path: string, to: string): Promise<void> {
  const names = await store.list(path).catch(() => [])
  if (names.length > 0) return sideBySide(names, (name) => copy(store, `${path}/${name}`, `${to}/${name}`))
  try {
    await store.create(to, store.stream(path))
  } catch (error) {
    // An empty folder.
    if (!isExportError(error, 'storage') || (await store.list(path).catch(() => null)) === null) throw error
  }
}

async function unusedName(store: OwnedStore, path: string): Promise<string> {
  for (let copy = 0; ; copy++) {
    const name = `${path}${copy === 0 ? '' : `.${copy}`}.orphan`
    if ((await store.size(name)) === null) return name
  }
}
