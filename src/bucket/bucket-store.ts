import { type ExpectedStat, type OwnedStore, type Store, takenOver } from '../core/index.ts'
import { type Condition, Conflict, type Driver, PART_BYTES, type Upload, unfit } from './driver.ts'
import {
  changedByOthers,
  gone,
  OwnedObjects,
  type RequireLock,
  SEALED,
  writeObject,
} from './owned-objects.ts'

/** Every object appears in one step. An owner has a marker, `_state/open.<owner>`, which the next owner removes. */
export function bucketStore(driver: Driver): Store {
  const store: Store = {
    ...readerOf(driver),
    own: (owner) => at(driver, '_state', async () => ({ ...store, ...(await own(driver, markerOf(owner))) })),
  }
  return store
}

async function own(driver: Driver, marker: string): Promise<Omit<OwnedStore, keyof Store>> {
  const requireLock = await makeMarker(driver, marker)
  const owned = new OwnedObjects(driver, marker, requireLock)
  return {
    create: (path, chunks) =>
      at(driver, path, () => owned.create(path, Symbol.asyncIterator in chunks ? chunks : bytesOf(chunks))),
    build: (chunks, path) => at(driver, SEALED, () => owned.build(chunks, path)),
    replace: (path, chunks) => at(driver, path, () => owned.replace(path, bytesOf(chunks))),
    publish: (from, to) => at(driver, to, () => owned.publish(from, to)),
    remove: (path) => at(driver, path, () => owned.remove(path)),
    takeOver: (owners) =>
      at(driver, '_state', async () => {
        const markers = [...owners].map(markerOf)
        for (const former of markers) await driver.remove(former)
        await requireLock()
        if (markers.length > 0) await abortUploads(driver, requireLock)
      }),
    requireLock: () => at(driver, '_state', requireLock),
    release: () => at(driver, '_state', () => driver.remove(marker)),
  }
}

function markerOf(owner: string): string {
  return `_state/open.${owner}`
}

async function makeMarker(driver: Driver, marker: string): Promise<RequireLock> {
  const requireLock = async (): Promise<void> => {
    if ((await driver.head(marker)) === null) throw takenOver(`${marker} is gone`)
  }
  await writeObject(driver, marker, [], 'absent')
  // Tested once, before a data set begins.
  if ((await driver.head('_state/checkpoint.jsonl')) !== null) return requireLock
  try {
    await requireConditions(driver, marker)
  } catch (error) {
    throw error instanceof Conflict ? takenOver(`${marker} is gone`) : error
  }
  return requireLock
}

/** An ETag that no object has. */
const NO_ETAG = '"00000000000000000000000000000000"'

/**
 * Without conditions two runs would overwrite each other's files unnoticed. @param name of an object that exists
 * @throws ExportError `config` naming the one that the store ignores; Conflict: the object is gone, taken over
 */
async function requireConditions(driver: Driver, name: string): Promise<void> {
  const conditions: readonly [header: string, condition: Condition][] = [
    ['If-None-Match', 'absent'],
    ['If-Match', { etag: NO_ETAG }],
  ]
  const isHonoured = (condition: Condition): Promise<boolean> =>
    writeObject(driver, name, [], condition).then(
      () => false,
      (error: unknown) => {
        if (error instanceof Conflict) return true
        throw error
      },
    )
  for (const [header, condition] of conditions) {
    if (await isHonoured(condition)) continue
    // Now the object exists. A second write tells a store that ignores the condition from an object that was missing.
    const wasGone = condition === 'absent' && (await isHonoured(condition))
    await driver.remove(name)
    if (wasGone) throw new Conflict()
    throw unfit(driver.address, `ignores ${header}`)
  }
}

/** Aborts what former owners have left, of which a list tells as long as this one holds the data set after it. */
async function abortUploads(driver: Driver, requireLock: RequireLock): Promise<void> {
  const left: Upload[] = []
  for await (const upload of driver.uploads('_state/')) if (OWN_UPLOADS.test(upload.name)) left.push(upload)
  if (left.length > 0) await requireLock()
  for (const upload of left) await upload.abort()
}

/** Uploads of others have other names. */
const OWN_UPLOADS = /^_state\/(?:(?:log|sealed)\/|checkpoint\.jsonl$)/

function readerOf(driver: Driver): Omit<Store, 'own'> {
  return {
    read: (path, start = 0, end = Number.POSITIVE_INFINITY) =>
      at(driver, path, async () => {
        if (end <= start) return (await driver.head(path)) === null ? null : new Uint8Array()
        const range = start === 0 && end === Number.POSITIVE_INFINITY ? null : ([start, end] as const)
        return (await driver.get(path, range, null))?.bytes ?? null
      }),
    async *stream(path) {
      const chunks = chunksOf(driver, path)
      for (;;) {
        const { done, value } = await at(driver, path, () => chunks.next())
        if (done === true) return
        yield value
      }
    },
    size: (path) => at(driver, path, async () => (await driver.head(path))?.size ?? null),
    list: (folder) => at(driver, folder, () => namesIn(driver, folder)),
    freeBytes: async () => null,
    mismatches: (expected) => at(driver, '.', () => mismatches(driver, expected)),
  }
}

/** The file in chunks. @throws ExportError `storage` when there is none, or it changes meanwhile */
async function* chunksOf(driver: Driver, path: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const get = (start: number, etag: string | null) => driver.get(path, [start, start + PART_BYTES], etag)
  let part = await get(0, null)
  for (let start = PART_BYTES; ; start += PART_BYTES) {
    if (part === null) throw gone(path)
    if (part.bytes.byteLength === 0) return
    const isLast = part.bytes.byteLength < PART_BYTES
    const next = isLast ? null : get(start, part.etag)
    // The caller may end here.
    next?.catch(() => {})
    yield part.bytes
    if (next === null) return
    part = await next
  }
}

async function namesIn(driver: Driver, folder: string): Promise<readonly string[]> {
  const start = folder === '' ? '' : `${folder}/`
  const names = new Set<string>()
  for await (const { name } of driver.list(start, false)) {
    if (name !== start) names.add(name.slice(start.length).replace(/\/$/, ''))
  }
  return [...names].sort()
}

/** Compares a listing of the bucket, thousands of names a request, with what is expected. */
async function mismatches(
  driver: Driver,
  expected: Iterable<ExpectedStat>,
): Promise<readonly ExpectedStat[]> {
  const sizes = new Map<string, number>()
  const folders = new Map<string, { readonly names: number; found: number; last: string }>()
  for (const each of expected) {
    if ('bytes' in each) sizes.set(each.path, each.bytes)
    else folders.set(each.path, { names: each.names, found: 0, last: '' })
  }
  const starts = new Set([...sizes.keys(), ...folders.keys()].map((path) => path.split('/', 1)[0]!))
  for (const start of starts) {
    for await (const { name, size } of driver.list(start, true)) {
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
  const different: ExpectedStat[] = Array.from(sizes, ([path, bytes]) => ({ path, bytes }))
  for (const [path, { names, found }] of folders) if (names !== found) different.push({ path, names })
  return different
}

function* bytesOf(chunks: Iterable<string | Uint8Array>): Generator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

/** Gives errors their path. */
async function at<T>(driver: Driver, path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof Conflict ? changedByOthers(path) : driver.error(error, path)
  }
}
