import {
  type ExpectedStat,
  ExportError,
  type FencedStore,
  type Log,
  type StatCheck,
  type Store,
  wrapLog,
} from '../core/index.ts'
import { Files } from './files.ts'
import { replaceByCopy } from './growing-file.ts'
import { bindBucket, refuseOtherHome } from './home.ts'
import { KnownObjects, type Owner } from './known-objects.ts'
import { openLog, openSmallLog } from './logs.ts'
import { Bucket } from './requests/bucket.ts'
import { bucketError } from './requests/bucket-error.ts'
import type { BucketLocation } from './requests/client.ts'
import { Conflict } from './requests/connection.ts'
import { isShown, StagingPrefix } from './staging-prefix.ts'

/**
 * A {@link Store} below a prefix of a bucket, in any S3-compatible object storage that honours `If-Match` and
 * `If-None-Match`. Every object appears in one step. Runs work through a {@link FencedStore}, see {@link
 * StagingPrefix}.
 * @param fresh the data set starts over, wherever its state was kept
 */
export function s3Store(location: BucketLocation, fresh = false): Store {
  const bucket = new Bucket(location)
  return {
    ...storeOf(new KnownObjects(bucket, null)),
    fenced: (folder, owner) =>
      naming(folder, null, async () => {
        if (!fresh) await refuseOtherHome(bucket, null)
        const prefix = await StagingPrefix.make(bucket, folder, owner)
        return fencedStoreOf(bucket, prefix, fresh)
      }),
  }
}

function fencedStoreOf(bucket: Bucket, prefix: StagingPrefix, fresh: boolean): FencedStore {
  const objects = new KnownObjects(bucket, prefix)
  return {
    ...storeOf(objects),
    fenced: () => Promise.reject(new Error('a fenced store within one')),
    takeOver: (owner) => naming('_state', null, () => prefix.takeOver(owner)),
    replaceByCopy: (path) => naming(path, prefix, () => replaceByCopy(objects, path)),
    settle: () =>
      naming('_state', null, async () => {
        await prefix.settle()
        if (fresh) await bindBucket(bucket)
      }),
    release: () => naming('_state', null, () => prefix.release()),
    requireLock: () => naming('_state', null, () => prefix.require()),
  }
}

/** All of a store but `fenced`. */
export function storeOf(objects: KnownObjects): Omit<Store, 'fenced'> {
  const { bucket, owner } = objects
  const files = new Files(objects)
  const at = <T>(path: string, work: () => Promise<T>): Promise<T> => naming(path, owner, work)
  const logAt = (path: string, open: () => Promise<Log>): Promise<Log> =>
    at(path, async () => wrapLog(await open(), (work) => at(path, work)))
  return {
    isLocal: false,
    openLog: (path, size) => logAt(path, () => openLog(objects, path, size)),
    openSmallLog: (path, size) => logAt(path, () => openSmallLog(objects, path, size)),
    read: (path) => at(path, () => files.readWhole(path)),
    readRange: (path, start, end) => at(path, () => files.read(path, start, end)),
    readInto: (path, bytes) =>
      at(path, async () => {
        let read = 0
        for await (const chunk of files.stream(path, bytes.byteLength)) {
          bytes.set(chunk, read)
          read += chunk.byteLength
        }
        return read
      }),
    async *stream(path) {
      const chunks = files.stream(path)
      for (;;) {
        const { done, value } = await at(path, () => chunks.next())
        if (done === true) return
        yield value
      }
    },
    size: (path) => at(path, async () => (await files.find(path))?.size ?? null),
    // Unknown for object storage.
    freeBytes: async () => null,
    statCheck: () => {
      const check = statCheck(bucket)
      return { ...check, mismatches: () => at('.', () => check.mismatches()) }
    },
    writeWhole: (path, chunks) => at(path, () => files.write(path, bytesOf(chunks))),
    publish: (from, to) => at(to, () => files.publish(from, to)),
    remove: (path) => at(path, () => files.remove(path)),
    list: (folder) =>
      at(folder, async () => {
        const names = new Set<string>()
        for await (const name of bucket.names(objects.nameOf(folder))) {
          if (isShown(name)) names.add(name)
        }
        return [...names].sort()
      }),
    removeFolder: (folder) => at(folder, () => files.removeFolder(folder)),
    // There are no folders, only names.
    removeEmptyFolder: async () => {},
  }
}

function* bytesOf(chunks: Iterable<string | Uint8Array>): Generator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

/** Gives errors their path. If another owner took over, that is the error instead. */
export async function naming<T>(
  path: string,
  owner: Pick<Owner, 'require'> | null,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Conflict)) throw bucketError(error, path)
    try {
      await owner?.require()
    } catch (loss) {
      throw bucketError(loss, path)
    }
    throw changedByOthers(path)
  }
}

function changedByOthers(path: string): ExportError {
  return new ExportError(
    'locked',
    'Another process has changed the object meanwhile',
    path,
    'See that one pipeline alone writes to this load.path, then run again; what is committed stays.',
  )
}

/** Compares a listing of the bucket, a thousand names a request, with what is expected. */
function statCheck(bucket: Bucket): StatCheck {
  const sizes = new Map<string, number>()
  const folders = new Map<string, { readonly names: number; found: number; last: string }>()
  return {
    add(expected) {
      if ('bytes' in expected) sizes.set(expected.path, expected.bytes)
      else folders.set(expected.path, { names: expected.names, found: 0, last: '' })
    },
    async mismatches() {
      const starts = new Set([...sizes.keys(), ...folders.keys()].map((path) => path.split('/', 1)[0]!))
      for (const start of starts) {
        for await (const { name, size } of bucket.objects(start)) {
          if (sizes.get(name) === size) sizes.delete(name)
          for (let end = name.lastIndexOf('/'); end > 0; end = name.lastIndexOf('/', end - 1)) {
            const folder = folders.get(name.slice(0, end))
            if (folder === undefined) continue
            // Names of the same subfolder come one after the other.
            const [child = ''] = name.slice(end + 1).split('/', 1)
            if (child !== folder.last) folder.found++
            folder.last = child
          }
        }
      }
      const different: ExpectedStat[] = []
      for (const [path, bytes] of sizes) different.push({ path, bytes })
      for (const [path, { names, found }] of folders) if (names !== found) different.push({ path, names })
      return different
    },
    async close() {},
  }
}
