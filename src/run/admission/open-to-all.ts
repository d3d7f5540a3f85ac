import { stat } from 'node:fs/promises'
import type { Pipeline } from '../../core/index.ts'
import type { RunObserver } from '../setting/index.ts'

const OTHERS_WRITE = 0o002

/** Warns where anybody on this machine may change what is exported: it can't be vouched for. */
export async function warnOfOpenDoors({ load }: Pipeline, observer: RunObserver): Promise<void> {
  const { place } = load
  if (place.kind !== 'disk') return
  if ((load.fileMode & OTHERS_WRITE) !== 0) {
    const mode = load.fileMode.toString(8).padStart(4, '0')
    observer.log('warn', 'load.file_mode lets every user of this machine change the files', { mode })
  }
  const folder = await stat(place.root).catch(() => null)
  // Windows has no such permissions, and Node.js makes some up.
  if (folder === null || process.platform === 'win32' || (folder.mode & OTHERS_WRITE) === 0) return
  observer.log('warn', 'every user of this machine may put files into load.path, or take them away', {
    path: place.root,
  })
}
