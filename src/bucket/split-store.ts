import type { Store } from '../core/index.ts'
import { abortOwnUploads, at, changesOf, ifOwner, readerOf } from './bucket-store.ts'
import type { Driver } from './driver.ts'
import { type Binding, bindHome, type Home, refuseOtherHome, requireHome } from './home.ts'
import { Objects } from './objects.ts'

/**
 * A store with the state on a local disk, and shards and all other files below a prefix of a bucket. The lock is that of
 * the disk.
 * @param binding.folder location of the state, for messages on other machines
 */
export function splitStore(driver: Driver, state: Store, binding: Binding): Store {
  const objects = new Objects(driver)
  const data = readerOf(objects)
  const of = <T>(path: string, onDisk: T, inBucket: T): T => (isState(path) ? onDisk : inBucket)
  const reader: Omit<Store, 'own'> = {
    read: (path, start, end, memory) => of(path, state, data).read(path, start, end, memory),
    stream: (path) => of(path, state, data).stream(path),
    size: (path) => of(path, state, data).size(path),
    list: (folder) => of(folder, state, data).list(folder),
    freeBytes: () => state.freeBytes(),
    // Shards alone are checked.
    statCheck: () => data.statCheck(),
  }
  const own: Store['own'] = async (owner) => {
    const ownState = await state.own(owner)
    let home: Home | null = null
    const requireLock = async (): Promise<void> => {
      await ownState.requireLock()
      if (home !== null) await requireHome(objects, home)
    }
    const succession = { hasFormer: false }
    const ownData = changesOf(objects, requireLock, succession)
    return {
      ...reader,
      own,
      create: (path, chunks) => of(path, ownState, ownData).create(path, chunks),
      // Shards alone are encoded before they have a name.
      scratch: () => ownData.scratch(),
      replace: (path, chunks, access) => of(path, ownState, ownData).replace(path, chunks, access),
      publish(from, to) {
        if (isState(from) !== isState(to)) throw new Error('a move from the disk to the bucket')
        return of(to, ownState, ownData).publish(from, to)
      },
      remove: (path) => of(path, ownState, ownData).remove(path),
      async takeOver(owners) {
        const former = [...owners]
        await ownState.takeOver(former)
        succession.hasFormer ||= former.length > 0
        await at(driver, '_state', async () => {
          // Of several runs that start at the same time only the one that got the lock comes here.
          home = await bindHome(objects, ownState, binding)
          await abortOwnUploads(driver)
        })
      },
      requireLock: () => ownState.requireLock(),
      async release() {
        try {
          if (home !== null)
            await at(driver, '_state', () => ifOwner(requireLock, () => abortOwnUploads(driver)))
        } finally {
          await ownState.release()
        }
      },
    }
  }
  return { ...reader, own }
}

/**
 * Refuses a data set whose state is kept elsewhere, as a run would; changes nothing.
 * @param state null: it is to be in the bucket
 * @throws ExportError `config`
 */
export function requireState(driver: Driver, state: Store | null): Promise<void> {
  return at(driver, '_state', () => refuseOtherHome(new Objects(driver), state))
}

function isState(path: string): boolean {
  return /^_state(?:$|\/)/.test(path) && !/^_state\/sealed(?:$|\/)/.test(path)
}
