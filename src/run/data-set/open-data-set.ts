import type { Pipeline, Store } from '../../core/index.ts'
import { diskStore, requireWritable } from '../../disk/index.ts'
import { s3Store, splitStore } from '../../s3/index.ts'

/** Where a pipeline writes to. */
export function openDataSet({ load }: Pipeline): Store {
  const { place, fileMode, dirMode } = load
  if (place.kind === 'disk') return diskStore({ root: place.root, fileMode, dirMode })
  const { stateRoot } = place
  if (stateRoot === null) return s3Store(place)
  return splitStore(place, diskStore({ root: stateRoot, fileMode, dirMode }), stateRoot)
}

/** @throws ExportError as the first write there would, as far as that can be known without one */
export async function requireReachable({ load: { place } }: Pipeline): Promise<void> {
  if (place.kind === 'disk') return requireWritable(place.root)
  if (place.stateRoot !== null) await requireWritable(place.stateRoot)
  await s3Store(place).list('')
}
