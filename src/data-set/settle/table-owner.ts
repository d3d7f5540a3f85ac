import { randomUUID } from 'node:crypto'
import { nullIf, type Store } from '../../core/index.ts'
import type { TableOwner } from '../../open-tables/index.ts'
import { CHECKPOINT_PATH, MANIFEST_PATH, readHeader, readManifest } from '../../state/index.ts'

/** One that has not begun owns no tables. */
export async function tableOwner(store: Store): Promise<TableOwner> {
  const header = await readHeader(store).catch(nullIf('damaged', 'config', 'storage'))
  if (header !== null) return { dataSetId: header.data_set_id }
  const manifest = await readManifest(store).catch(nullIf('damaged', 'storage'))
  if (manifest !== null) return { dataSetId: manifest.data_set_id }
  const sizes = await Promise.all([CHECKPOINT_PATH, MANIFEST_PATH].map((path) => store.size(path)))
  return { dataSetId: sizes.every((size) => size === null) ? randomUUID() : null }
}
