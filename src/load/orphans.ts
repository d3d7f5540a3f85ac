import { hasCode, isExportError, type OwnedStore } from '../core/index.ts'

/** The folder for files that are not part of the data set. Nothing is deleted there. */
export const ORPHANS = '_state/orphans'

/** Moves a file or folder that is not Spillway's, or not in the checkpoint, out of the data set. @returns its new path */
export async function moveToOrphans(store: OwnedStore, path: string): Promise<string> {
  const names = await store.list(path).catch(() => [])
  for (const name of names) await moveToOrphans(store, `${path}/${name}`)
  const orphan = names.length > 0 ? `${ORPHANS}/${path}` : await copied(store, path)
  await store.remove(path)
  return orphan
}

/** Only sealed shards are moved: a former owner could move what the present one has written since. */
async function copied(store: OwnedStore, path: string): Promise<string> {
  for (let copy = 0; ; copy++) {
    const orphan = `${ORPHANS}/${path}${copy === 0 ? '' : `.${copy}`}.orphan`
    try {
      if (await store.create(orphan, store.stream(path))) return orphan
    } catch (error) {
      const isEmptyFolder = isExportError(error, 'storage') && hasCode(error.cause, 'EISDIR')
      if (!isEmptyFolder) throw error
      return orphan
    }
  }
}
