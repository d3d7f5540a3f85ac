import { randomBytes } from 'node:crypto'
import type { Store } from '../core/index.ts'
import { OPEN_FOLDER, partOf } from './layout.ts'

/**
 * Moves the shards of a folder that are not on record out of the data set: a reader would take their rows for
 * data, beside the same rows exported again. They are kept in `_state/orphans`, under names that do not end like a
 * shard's: some readers look into every folder for those.
 * @param isKnown whether the checkpoint vouches for a shard, by its path and its number
 */
export async function setAsideStrangers(
  store: Store,
  folder: string,
  isKnown: (path: string, part: number) => boolean,
  warn: (message: string) => void,
): Promise<void> {
  for (const name of await store.list(folder)) {
    const path = `${folder}/${name}`
    const part = partOf(name)
    if (part === null || isKnown(path, part)) continue
    const aside = await setAside(store, path)
    warn(`${path} is not in the checkpoint; moved to ${aside}`)
  }
}

/** Where what nobody is to take for data is kept; nothing is ever deleted there. */
export const ORPHANS = '_state/orphans'

/** Moves what is not Spillway's own, or not on record, to where nobody takes it for data. @returns its new path */
export async function setAside(store: Store, path: string): Promise<string> {
  const aside = await unusedName(store, `${ORPHANS}/${path}`)
  const between = `${OPEN_FOLDER}/${randomBytes(4).toString('hex')}${BETWEEN}`
  // In two steps, since names change by way of a run's own folder alone.
  await store.publish(path, between)
  await store.publish(between, aside)
  return aside
}

/** Brings what a crash kept between the two steps to where it was to go, without the folders that it came from. */
export async function finishSettingAside(store: Store): Promise<void> {
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
