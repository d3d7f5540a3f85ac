import { randomBytes } from 'node:crypto'
import type { Store } from '../core/index.ts'
import { OPEN_FOLDER, partOf } from './layout.ts'

/**
 * Moves the shards of a folder that are not in the checkpoint out of the data set. Their rows are exported again, so
 * readers would read them twice. They are kept in `_state/orphans`. Their names there do not have a shard's extension,
 * since some readers search every folder for it.
 * @param isKnown whether a shard is in the checkpoint, by its path and its number
 */
export async function moveUnknownShards(
  store: Store,
  folder: string,
  isKnown: (path: string, part: number) => boolean,
  warn: (message: string) => void,
): Promise<void> {
  for (const name of await store.list(folder)) {
    const path = `${folder}/${name}`
    const part = partOf(name)
    if (part === null || isKnown(path, part)) continue
    const orphan = await moveToOrphans(store, path)
    warn(`${path} is not in the checkpoint; moved to ${orphan}`)
  }
}

/** The folder for files that are not part of the data set. Nothing is deleted there. */
export const ORPHANS = '_state/orphans'

/** Moves a file that is not Spillway's, or not in the checkpoint, out of the data set. @returns its new path */
export async function moveToOrphans(store: Store, path: string): Promise<string> {
  const orphan = await unusedName(store, `${ORPHANS}/${path}`)
  const between = `${OPEN_FOLDER}/${randomBytes(4).toString('hex')}${BETWEEN}`
  // Two steps, because each rename has one side in the staging directory.
  await store.publish(path, between)
  await store.publish(between, orphan)
  return orphan
}

/** Finishes moves that a crash interrupted between the two steps. The original folder is unknown by then. */
export async function finishMoves(store: Store): Promise<void> {
  for (const name of await store.list(OPEN_FOLDER)) {
    if (!name.endsWith(BETWEEN)) continue
    await store.publish(`${OPEN_FOLDER}/${name}`, await unusedName(store, `${ORPHANS}/${name}`))
  }
}

const BETWEEN = '.aside'

async function unusedName(store: Store, path: string): Promise<string> {
  for (let copy = 0; ; copy++) {
    const name = `${path}${copy === 0 ? '' : `.${copy}`}.orphan`
    if ((await store.size(name)) === null) return name
  }
}
