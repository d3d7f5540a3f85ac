import { randomBytes } from 'node:crypto'
import { constants, statfsSync } from 'node:fs'
import { access, lstat, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type ExpectedStat,
  ExportError,
  hasCode,
  isExportError,
  type OwnedStore,
  type Store,
  sideBySide,
} from '../core/index.ts'
import { Folders, LinkGuard, pathIn } from './folders.ts'
import { chunksOf, fsyncFolder, readRange } from './open-file.ts'
import { OwnedFiles } from './owned-files.ts'
import { StagingDirectory } from './staging-directory.ts'
import { isAbsent, nullIfAbsent, storageError, unlessAbsent } from './storage-error.ts'

export type DiskOptions = {
  /** Absolute path of the data set. */
  readonly root: string
  readonly fileMode: number
  readonly dirMode: number
}

/** Files get the modes given, whatever the umask. What is written is fsynced, its entry too. Links are not followed. */
export function diskStore(options: DiskOptions): Store {
  const folders = new Folders(options.root, options.dirMode)
  const store: Store = {
    ...readerOf(folders),
    own: (owner) => at('_state', async () => ({ ...store, ...(await own(folders, owner, options)) })),
  }
  return store
}

function readerOf(folders: Folders): Omit<Store, 'own'> {
  const { root, guard } = folders
  return {
    read: (path, start = 0, end = Infinity) =>
      at(path, async () => unlessAbsent(() => readRange(folders.checked(path), start, end))),
    async *stream(path) {
      try {
        yield* chunksOf(folders.checked(path))
      } catch (error) {
        throw storageError(error, path)
      }
    },
    size: (path) => at(path, async () => folders.find(path)?.size ?? null),
    list: (folder) =>
      at(folder, async () => {
        const full = pathIn(root, folder)
        unlessAbsent(() => guard.check(full))
        const names = await readdir(full).catch(nullIfAbsent)
        return names?.sort() ?? []
      }),
    freeBytes: async () => freeBytes(root),
    mismatches: (expected) => mismatches(root, expected),
  }
}

async function own(
  folders: Folders,
  owner: string,
  { fileMode, dirMode }: DiskOptions,
): Promise<Omit<OwnedStore, keyof Store>> {
  const state = join(folders.root, '_state')
  const staging = await folders.naming(state, () => StagingDirectory.make(state, owner, dirMode))
  const owned = new OwnedFiles(folders, staging, fileMode)

  /** If the staging directory is gone, that is the error instead. */
  const change = <T>(path: string, work: () => Promise<T>): Promise<T> =>
    at(path, async () => {
      try {
        return await work()
      } catch (error) {
        if (isAbsent(error) || hasCode(error, 'ESTALE')) await staging.require()
        throw error
      }
    })

  return {
    create: (path, chunks) => change(path, () => owned.create(path, chunks)),
    build: async (chunks, path) => void (await change('_state/sealed', () => owned.create(path, chunks))),
    extend: (path, size, chunks) => change(path, () => owned.extend(path, size, chunks)),
    fsync: (path) => change(path, () => owned.fsync(path)),
    replace: (path, chunks, access) =>
      change(path, () => owned.replace(path, chunks, access === 'private' ? 0o600 : undefined)),
    publish: (from, to) => change(to, () => owned.publish(from, to)),
    remove: (path) => change(path, () => owned.remove(path)),
    takeOver: (owners) => change('_state', () => owned.takeOver(owners)),
    requireLock: () => at('_state', () => staging.require()),
    release: () =>
      at('_state', async () => {
        await staging.release()
        // It is absent if the whole data set was removed.
        await staging.fsync().catch(nullIfAbsent)
      }),
  }
}

/** Gives errors their path. */
async function at<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw storageError(error, path)
  }
}

function freeBytes(root: string): number | null {
  for (let folder = root; ; folder = dirname(folder)) {
    try {
      const { bavail, bsize, blocks } = statfsSync(folder)
      // Some file systems over a network do not report their size.
      return blocks === 0 ? null : bavail * bsize
    } catch (error) {
      // Before the first run there is no folder.
      if (!isAbsent(error) || folder === dirname(folder)) return null
    }
  }
}

/** @returns files and folders that hold something else, are links, or cannot be read, in their order */
async function mismatches(root: string, expected: Iterable<ExpectedStat>): Promise<readonly ExpectedStat[]> {
  const guard = new LinkGuard(root)
  const found: (readonly [index: number, expected: ExpectedStat])[] = []
  let next = 0
  await sideBySide(expected, async (each) => {
    const index = next++
    if (!(await isAsExpected(root, guard, each).catch(() => false))) found.push([index, each])
  })
  return found.sort(([a], [b]) => a - b).map(([, each]) => each)
}

async function isAsExpected(root: string, guard: LinkGuard, expected: ExpectedStat): Promise<boolean> {
  const full = pathIn(root, expected.path)
  if ('names' in expected) {
    unlessAbsent(() => guard.check(full))
    // A folder that is not there has no names, as in a bucket.
    return ((await readdir(full).catch(nullIfAbsent))?.length ?? 0) === expected.names
  }
  guard.check(dirname(full))
  const found = await lstat(full)
  return found.isFile() && found.size === expected.bytes
}

/**
 * Checks a folder, or the nearest one above it that exists. Makes nothing. @param where names the folder in messages
 * @throws ExportError `config` when nothing can ever be written there, else `storage`, as the first write would
 */
export async function requireWritable(folder: string, where = folder): Promise<void> {
  try {
    for (let path = folder; ; path = dirname(path)) {
      const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' && path !== dirname(path)) return null
        throw error
      })
      if (found === null) {
        const isLink = (await lstat(path).catch(nullIfAbsent))?.isSymbolicLink() === true
        if (isLink)
          throw new ExportError({
            kind: 'config',
            what: 'There is a symbolic link to a folder that is not there',
            where: path,
            next: 'Make that folder, mount it, or correct load.path.',
          })
        continue
      }
      if (!found.isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' })
      await access(path, constants.W_OK | constants.X_OK)
      // Not every file system can: then no file in it would ever be durable.
      return await fsyncFolder(path)
    }
  } catch (error) {
    throw asSetting(error, storageError(error, where))
  }
}

/** Writes a small file in a folder, or in the nearest one above it that exists, and removes it. @throws ExportError */
export async function probeFolder(folder: string): Promise<void> {
  let path = folder
  while (path !== dirname(path) && (await stat(path).catch(nullIfAbsent)) === null) path = dirname(path)
  const probe = join(path, `.spillway-probe-${randomBytes(6).toString('hex')}`)
  try {
    await writeFile(probe, 'probe\n', { flag: 'wx', mode: 0o600, flush: true })
  } catch (error) {
    throw storageError(error, '.')
  } finally {
    await rm(probe, { force: true }).catch(() => {})
  }
}

/** Before anything is changed, these mean that the setting is wrong, not the disk. */
const SETTINGS = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST']

function asSetting(error: unknown, translated: unknown): unknown {
  if (!isExportError(translated) || !hasCode(error, ...SETTINGS)) return translated
  const { what, where, next } = translated
  return new ExportError({ kind: 'config', what, where, next, cause: error })
}
