import { isExportError, type Pipeline, type Store } from '../../core/index.ts'
import { partOf } from '../../load/index.ts'

const FOLDERS = ['credentials', 'reports']

/**
 * Every file below the folders of rows, whatever its name: patterns read all that ends like a shard, in whatever
 * folder, and some engines read all that there is.
 */
export async function* filesOfRows(pipeline: Pipeline, store: Store): AsyncGenerator<string> {
  for (const folder of FOLDERS) yield* filesBelow(folder, await store.list(folder), pipeline, store)
}

async function* filesBelow(
  folder: string,
  names: readonly string[],
  pipeline: Pipeline,
  store: Store,
): AsyncGenerator<string> {
  for (const name of names) {
    const path = `${folder}/${name}`
    // Of half a million shards none is looked at twice.
    const below = partOf(name) === null ? await namesIn(path, store) : []
    if (below === null) yield path
    else if (below.length > 0) yield* filesBelow(path, below, pipeline, store)
    else if (partOf(name) !== null || !(await isEmptyFolder(path, pipeline, store))) yield path
  }
}

/** null: a symbolic link, for one, which readers follow. */
async function namesIn(path: string, store: Store): Promise<readonly string[] | null> {
  try {
    return await store.list(path)
  } catch (error) {
    if (isExportError(error, 'storage')) return null
    throw error
  }
}

async function isEmptyFolder(path: string, { load }: Pipeline, store: Store): Promise<boolean> {
  if (load.place.kind === 's3') return false
  const looks = store.statCheck()
  try {
    looks.add({ path, names: 0 })
    return (await looks.mismatches()).length === 0
  } finally {
    await looks.close()
  }
}
