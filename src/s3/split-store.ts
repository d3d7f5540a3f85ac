import type { OwnStore, Store } from '../core/index.ts'
import { Files, type Owner } from './files/index.ts'
import { bindHome } from './home.ts'
import { isOurs } from './own-prefix.ts'
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
    own: async (path, owner) => {
      const own = await state.own(path, owner)
      try {
        await naming('_state', null, () => bindHome(bucket, own, folder))
      } catch (error) {
        await own.leave()
        throw error
      }
      const claim: Owner = {
        place: (each) => each,
        has: () => false,
        mayHold: () => true,
        require: () => own.require(),
      }
      return ownJoined(own, bucket, claim)
    },
  }
}

function ownJoined(own: OwnStore, bucket: Bucket, claim: Owner): OwnStore {
  return {
    ...joined(own, bucket, claim),
    own: own.own,
    takeOver: own.takeOver,
    renew: (path) => (isState(path) ? own.renew(path) : Promise.resolve()),
    async settle() {
      await own.settle()
      await naming('_state', null, () => bucket.abortUploads(isOurs))
    },
    leave: own.leave,
    require: own.require,
  }
}

function joined(state: Store, bucket: Bucket, owner: Owner | null): Omit<Store, 'own'> {
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
    looks: () => data.looks(),
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
    await log.flush()
  } finally {
    await log.close()
  }
}
