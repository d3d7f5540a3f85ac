import { type FencedStore, type Store, wrapLog } from '../core/index.ts'
import { DiskFiles, type DiskOptions } from './disk-files.ts'
import type { StagingDirectory } from './staging-directory.ts'
import { statCheck } from './stat-check.ts'
import { hasCode, isAbsent, storageError } from './storage-error.ts'

/**
 * A {@link Store} in a folder of a local disk. Files are private: they get the modes given, whatever the umask allows.
 * What is said to be written is fsynced, its folder entry too. Symbolic links below the folder are not followed. Locks,
 * and runs that change the data set, work through a {@link FencedStore}.
 */
export function diskStore(options: DiskOptions): Store {
  return storeOf(options, new DiskFiles(options), null)
}

function fencedStoreOf(options: DiskOptions, files: DiskFiles, staging: StagingDirectory): FencedStore {
  const at = naming(staging)
  return {
    ...storeOf(options, files, staging),
    takeOver: (owner, mayWrite) => at('_state', () => staging.takeOver(owner, mayWrite)),
    replaceByCopy: (path) => at(path, () => files.replaceByCopy(path)),
    settle: () => at('_state', () => staging.settle()),
    release: () => at('_state', () => staging.release()),
    requireLock: () => at('_state', () => staging.require()),
  }
}

function storeOf(options: DiskOptions, files: DiskFiles, staging: StagingDirectory | null): Store {
  const at = naming(staging)
  const openLog: Store['openLog'] = (path, size) =>
    at(path, async () => wrapLog(await files.openLog(path, size), (work) => at(path, work)))
  return {
    isLocal: true,
    openLog,
    openSmallLog: openLog,
    read: (path) => at(path, () => files.read(path)),
    readRange: (path, start, end) => at(path, () => files.readRange(path, start, end)),
    readInto: (path, bytes) => at(path, () => files.readInto(path, bytes)),
    async *stream(path) {
      try {
        yield* files.stream(path)
      } catch (error) {
        throw storageError(error, path)
      }
    },
    size: (path) => at(path, () => files.size(path)),
    freeBytes: () => files.freeBytes(),
    statCheck: () => statCheck(options.root),
    writeWhole: (path, chunks) => at(path, () => files.writeWhole(path, chunks)),
    publish: (from, to) => at(to, () => files.publish(from, to)),
    remove: (path) => at(path, () => files.remove(path)),
    list: (folder) => at(folder, () => files.list(folder)),
    removeFolder: (folder) => at(folder, () => files.removeFolder(folder)),
    removeEmptyFolder: (folder) => at(folder, () => files.removeEmptyFolder(folder)),
    fenced: (folder, owner) =>
      at(folder, async () => {
        const fenced = await files.fenced(folder, owner)
        return fencedStoreOf(options, fenced.files, fenced.staging)
      }),
  }
}

/** Gives errors their path. If the staging directory is gone, that is the error instead. */
function naming(staging: StagingDirectory | null) {
  return async <T>(path: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (staging === null || !(isAbsent(error) || hasCode(error, 'ESTALE'))) throw storageError(error, path)
      try {
        await staging.requireSettled()
      } catch (loss) {
        throw storageError(loss, path)
      }
      throw storageError(error, path)
    }
  }
}
