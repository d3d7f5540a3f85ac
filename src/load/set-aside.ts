import type { Store } from '../core/index.ts'
import { partOf } from './layout.ts'

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
    const aside = await unusedName(store, `_state/orphans/${path}`)
    await store.publish(path, aside)
    warn(`${path} is not in the checkpoint; moved to ${aside}`)
  }
}

async function unusedName(store: Store, path: string): Promise<string> {
  for (let copy = 0; ; copy++) {
    const name = `${path}${copy === 0 ? '' : `.${copy}`}.orphan`
    if ((await store.size(name)) === null) return name
  }
}
