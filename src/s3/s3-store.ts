import { ExportError, type FencedStore, type Log, type Store, wrapLog } from '../core/index.ts'
import { Files, type Owner } from './files/index.ts'
import { refuseOtherHome } from './home.ts'
import { isShown, OwnPrefix } from './own-prefix.ts'
import { Bucket, type BucketPlace, bucketError, Conflict } from './requests/index.ts'
import { looks } from './stat-check.ts'

/**
 * A {@link Store} below a prefix of a bucket, in any S3-compatible object storage that honours `If-Match` and
 * `If-None-Match`. Every object appears whole. Runs work through an `own` store, see {@link OwnPrefix}.
 */
export function s3Store(place: BucketPlace): Store {
  const bucket = new Bucket(place)
  return {
    ...storeOf(bucket, null),
    fenced: (folder, owner) =>
      naming(folder, null, async () => {
        await refuseOtherHome(bucket, null)
        const prefix = await OwnPrefix.make(bucket, folder, owner)
        return ownStoreOf(bucket, prefix)
      }),
  }
}

function ownStoreOf(bucket: Bucket, prefix: OwnPrefix): FencedStore {
  const files = new Files(bucket, prefix)
  return {
    ...storeOf(bucket, prefix, files),
    fenced: () => Promise.reject(new Error('an own store within one')),
    takeOver: (owner) => naming('_state', null, () => prefix.takeOver(owner)),
    replaceByCopy: (path) => naming(path, prefix, () => files.renew(path)),
    settle: () => naming('_state', null, () => prefix.settle()),
    release: () => naming('_state', null, () => prefix.leave()),
    requireLock: () => naming('_state', null, () => prefix.require()),
  }
}

/** All of a store but the way to become an owner. @param owner null: whoever reads, or writes without a claim */
export function storeOf(
  bucket: Bucket,
  owner: Owner | null,
  files: Files = new Files(bucket, owner),
): Omit<Store, 'fenced'> {
  const at = <T>(path: string, work: () => Promise<T>): Promise<T> => naming(path, owner, work)
  const logAt = (path: string, open: () => Promise<Log>): Promise<Log> =>
    at(path, async () => wrapLog(await open(), (work) => at(path, work)))
  return {
    openLog: (path, size) => logAt(path, () => files.openLog(path, size)),
    openSmallLog: (path, size) => logAt(path, () => files.openSmallLog(path, size)),
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
    // Nobody knows.
    freeBytes: async () => null,
    statCheck: () => {
      const looking = looks(bucket)
      return { ...looking, mismatches: () => at('.', () => looking.mismatches()) }
    },
    writeWhole: (path, chunks) => at(path, () => files.write(path, bytesOf(chunks))),
    publish: (from, to) => at(to, () => files.publish(from, to)),
    remove: (path) => at(path, () => files.remove(path)),
    list: (folder) =>
      at(folder, async () => {
        const names = new Set<string>()
        for await (const name of bucket.names(owner?.place(folder) ?? folder)) {
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

/** Gives what goes wrong the path that it is about; an owner that is none any more is told so first. */
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
    'Somebody else has changed the object meanwhile',
    path,
    'See that one pipeline alone writes to this load.path, then run again; what is committed stays.',
  )
}
