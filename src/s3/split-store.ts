import * as z from 'zod'
import { type FencedStore, isExportError, type Store } from '../core/index.ts'
import { Files } from './files.ts'
import { type Binding, bindHome, type Home, refuseOtherHome, requireHome } from './home.ts'
import { KnownObjects, type Owner } from './known-objects.ts'
import { abortUploads, type PendingUpload, PendingUploads, pendingUpload } from './pending-uploads.ts'
import { Bucket } from './requests/bucket.ts'
import type { BucketLocation } from './requests/client.ts'
import { naming, storeOf } from './s3-store.ts'

/**
 * A store with `_state` on a local disk and all other files below a prefix of a bucket. The lock is that of the disk.
 * @param folder location of the state, for messages on other machines
 * @param fresh the data set starts over, wherever its state was kept
 */
export function splitStore(location: BucketLocation, state: Store, folder: string, fresh = false): Store {
  const bucket = new Bucket(location)
  return {
    ...joined(state, bucket, null),
    fenced: async (path, owner) => fencedJoined(await state.fenced(path, owner), bucket, { folder, fresh }),
  }
}

/**
 * Refuses a data set whose state is kept elsewhere, as a run would; changes nothing.
 * @param state null: it is to be in the bucket
 * @throws ExportError `config`
 */
export function requireState(location: BucketLocation, state: Store | null): Promise<void> {
  return naming('_state', null, () => refuseOtherHome(new Bucket(location), state))
}

/** Multipart uploads that the owner has under way. */
const UPLOADS = '_state/uploads.json'

function fencedJoined(state: FencedStore, bucket: Bucket, binding: Binding): FencedStore {
  let home: Home | null = null
  const uploads = new PendingUploads(bucket, (all) => state.writeWhole(UPLOADS, [`${JSON.stringify(all)}\n`]))
  const owner: Owner = {
    objectName: (path) => path,
    has: () => false,
    mayHold: () => true,
    async require() {
      await state.requireLock()
      if (home !== null) await requireHome(bucket, home)
    },
    uploading: (name, upload) => uploads.track(name, upload),
  }
  return {
    ...joined(state, bucket, owner),
    fenced: state.fenced,
    takeOver: state.takeOver,
    replaceByCopy: (path) => (isState(path) ? state.replaceByCopy(path) : Promise.resolve()),
    async settle() {
      await state.settle()
      await naming('_state', null, async () => {
        // Of several runs that start at the same time only the one that got the lock comes here.
        home = await bindHome(bucket, state, binding)
        const left = await state.read(UPLOADS)
        if (left === null) return
        await abortUploads(bucket, uploadsIn(left))
        await state.remove(UPLOADS)
      })
    },
    async release() {
      try {
        await naming('_state', null, () => uploads.end())
        if (uploads.hasAny) await state.remove(UPLOADS)
      } catch (error) {
        // The new owner has aborted them.
        if (!isExportError(error, 'locked')) throw error
      } finally {
        await state.release()
      }
    },
    requireLock: state.requireLock,
  }
}

function uploadsIn(bytes: Uint8Array | null): readonly PendingUpload[] {
  return bytes === null ? [] : z.array(pendingUpload).parse(JSON.parse(Buffer.from(bytes).toString()))
}

function joined(state: Store, bucket: Bucket, owner: Owner | null): Omit<Store, 'fenced'> {
  const objects = new KnownObjects(bucket, owner)
  const data = storeOf(objects)
  const files = new Files(objects)
  const of = (path: string) => (isState(path) ? state : data)
  return {
    isLocal: true,
    openLog: (path, size) => of(path).openLog(path, size),
    openSmallLog: (path, size) => of(path).openSmallLog(path, size),
    read: (path) => of(path).read(path),
    readRange: (path, start, end) => of(path).readRange(path, start, end),
    readInto: (path, bytes) => of(path).readInto(path, bytes),
    stream: (path) => of(path).stream(path),
    size: (path) => of(path).size(path),
    freeBytes: () => state.freeBytes(),
    // Shards alone are checked.
    statCheck: () => data.statCheck(),
    writeWhole: (path, chunks) => of(path).writeWhole(path, chunks),
    async publish(from, to) {
      if (isState(from) === isState(to)) return of(from).publish(from, to)
      const [source, target] = [of(from), of(to)]
      if ((await source.size(from)) === null && (await target.size(to)) !== null) return
      if (isState(from)) await naming(to, owner, () => files.bring(to, state.stream(from)))
      else await copyInto(state, to, data.stream(from))
      await source.remove(from)
    },
    remove: (path) => of(path).remove(path),
    list: (folder) => of(folder).list(folder),
    removeFolder: (folder) => of(folder).removeFolder(folder),
    removeEmptyFolder: (folder) => of(folder).removeEmptyFolder(folder),
  }
}

function isState(path: string): boolean {
  return path === '_state' || path.startsWith('_state/')
}

async function copyInto(state: Store, path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const log = await state.openLog(path, 0)
  try {
    for await (const chunk of chunks) await log.append([chunk])
    await log.fsync()
  } finally {
    await log.close()
  }
}
