import { z } from 'zod'
import { type FencedStore, isExportError, type Store } from '../core/index.ts'
import { abortUploads, type BegunUpload, BegunUploads, begunUpload } from './begun-uploads.ts'
import { Files, type Owner } from './files/index.ts'
import { bindHome } from './home.ts'
import { Bucket, type BucketPlace } from './requests/index.ts'
import { naming, storeOf } from './s3-store.ts'

/**
 * A store whose `_state` lies in another one, on a local disk, and all else below a prefix of a bucket. The claim is
 * that of the local one.
 * @param folder where that is, for messages on other machines
 */
export function splitStore(place: BucketPlace, state: Store, folder: string): Store {
  const bucket = new Bucket(place)
  return {
    ...joined(state, bucket, null),
    fenced: async (path, owner) => ownJoined(await state.fenced(path, owner), bucket, folder),
  }
}

/** Uploads in parts that the owner has in hand. */
const UPLOADS = '_state/uploads.json'

function ownJoined(own: FencedStore, bucket: Bucket, folder: string): FencedStore {
  const uploads = new BegunUploads(bucket, (all) => own.writeWhole(UPLOADS, [`${JSON.stringify(all)}\n`]))
  const claim: Owner = {
    place: (each) => each,
    has: () => false,
    mayHold: () => true,
    require: () => own.requireLock(),
    uploading: (name, upload) => uploads.run(name, upload),
  }
  return {
    ...joined(own, bucket, claim),
    fenced: own.fenced,
    takeOver: own.takeOver,
    replaceByCopy: (path) => (isState(path) ? own.replaceByCopy(path) : Promise.resolve()),
    async settle() {
      await own.settle()
      await naming('_state', null, async () => {
        // Only now: of several that start together one alone comes here.
        await bindHome(bucket, own, folder)
        const left = await own.read(UPLOADS)
        if (left === null) return
        await abortUploads(bucket, uploadsIn(left))
        await own.remove(UPLOADS)
      })
    },
    async release() {
      try {
        await naming('_state', null, () => uploads.end())
        if (uploads.hasBegun) await own.remove(UPLOADS)
      } catch (error) {
        // Whoever took over has ended them.
        if (!isExportError(error, 'locked')) throw error
      } finally {
        await own.release()
      }
    },
    requireLock: own.requireLock,
  }
}

function uploadsIn(bytes: Uint8Array | null): readonly BegunUpload[] {
  return bytes === null ? [] : z.array(begunUpload).parse(JSON.parse(Buffer.from(bytes).toString()))
}

function joined(state: Store, bucket: Bucket, owner: Owner | null): Omit<Store, 'fenced'> {
  const files = new Files(bucket, owner)
  const data = storeOf(bucket, owner, files)
  const of = (path: string) => (isState(path) ? state : data)
  return {
    openLog: (path, size) => of(path).openLog(path, size),
    openSmallLog: (path, size) => of(path).openSmallLog(path, size),
    read: (path) => of(path).read(path),
    readRange: (path, start, end) => of(path).readRange(path, start, end),
    readInto: (path, bytes) => of(path).readInto(path, bytes),
    stream: (path) => of(path).stream(path),
    size: (path) => of(path).size(path),
    freeBytes: () => state.freeBytes(),
    // Of shards alone.
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
