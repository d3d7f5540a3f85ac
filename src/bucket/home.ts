import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import * as z from 'zod'
import { ExportError, type OwnedStore, type Store } from '../core/index.ts'
import { Conflict } from './driver.ts'
import { type Objects, requireConditions } from './objects.ts'

/**
 * Names the location of a data set's state outside the bucket. The same file is in the bucket and beside the state. It
 * names the bucket itself if the data set was started over there.
 */
const HOME = '_state/home.json'
/** The id of a state in the bucket. */
const IN_BUCKET = 'bucket'

const homeSchema = z.object({ id: z.string(), host: z.string(), folder: z.string() })
export type Home = z.infer<typeof homeSchema>

/** @param fresh the data set starts over, wherever its state was kept */
export type Binding = { readonly folder: string; readonly fresh: boolean }

/**
 * Binds a data set in a bucket to the one folder that holds its state, so that two machines with two states never write to
 * the same data set.
 * @throws ExportError `config` when the state is kept elsewhere, or the store ignores conditional writes
 * @throws ExportError `locked` when the file is changed at the same time
 */
export async function bindHome(
  objects: Objects,
  state: OwnedStore,
  { folder, fresh }: Binding,
): Promise<Home> {
  const own = await readOwn(state, fresh)
  const named = await readNamed(objects)
  if (own !== null && named?.home?.id === own.id) return own
  // A run whose state is in the bucket holds a lock there, which this one does not have.
  if (named !== null && (!fresh || named.home?.id === IN_BUCKET)) throw keptElsewhere(objects, named)
  if (await hasState(objects)) throw keptInBucket()
  const home = own ?? { id: randomUUID(), host: hostname(), folder }
  const bytes = bytesOf(home)
  if (own === null) await state.replace(HOME, [bytes])
  try {
    if (named !== null) await objects.write(HOME, [bytes], { etag: named.etag })
    else {
      await objects.write(HOME, [bytes], 'absent')
      await requireConditions(objects, HOME, bytes)
    }
  } catch (error) {
    if (!(error instanceof Conflict)) throw error
    // Another run has written the file, or removed it.
    const now = await readNamed(objects)
    if (now !== null && now.home?.id !== home.id) throw keptElsewhere(objects, now)
    await requireHome(objects, home)
  }
  return home
}

/** Binds a data set that starts over to a state in the bucket, if it had its state elsewhere. */
export async function bindBucket(objects: Objects): Promise<void> {
  const named = await readNamed(objects)
  if (named === null || named.home?.id === IN_BUCKET) return
  const home = { id: IN_BUCKET, host: hostname(), folder: objects.driver.address }
  await objects.write(HOME, [bytesOf(home)], { etag: named.etag })
}

/**
 * Refuses what {@link bindHome} would refuse; changes nothing.
 * @param state null: the state is to be in the bucket
 * @throws ExportError `config` when it is kept elsewhere
 */
export async function refuseOtherHome(objects: Objects, state: Store | null): Promise<void> {
  const id = state === null ? IN_BUCKET : (await readOwn(state, false))?.id
  const named = await readNamed(objects)
  if (named !== null && named.home?.id !== id) throw keptElsewhere(objects, named)
  if (named === null && state !== null && (await hasState(objects))) throw keptInBucket()
}

/** @throws ExportError `locked` when the bucket names another home: the data set was started over elsewhere */
export async function requireHome(objects: Objects, home: Home): Promise<void> {
  const named = await readNamed(objects)
  if (named?.home?.id === home.id) return
  throw new ExportError({
    kind: 'locked',
    what: `The file that names the location of the state was ${named === null ? 'removed' : 'replaced'} while this run used it`,
    where: whereIn(objects),
    next: 'See that one pipeline alone writes to this load.path, then run again.',
  })
}

/** What a bucket names as the location of the state; the home is null if it cannot be parsed. */
type Named = { readonly home: Home | null; readonly etag: string }

async function readNamed(objects: Objects): Promise<Named | null> {
  const found = await objects.driver.get(HOME, null, null)
  if (found === null) return null
  try {
    return { home: parse(found.bytes), etag: found.etag }
  } catch {
    return { home: null, etag: found.etag }
  }
}

async function readOwn(state: Store, fresh: boolean): Promise<Home | null> {
  const bytes = await state.read(HOME)
  if (bytes === null) return null
  try {
    return parse(bytes)
  } catch (error) {
    if (fresh) return null
    throw unreadable(HOME, error)
  }
}

function parse(bytes: Uint8Array): Home {
  return homeSchema.parse(JSON.parse(Buffer.from(bytes).toString()))
}

function bytesOf(home: Home): Uint8Array {
  return Buffer.from(`${JSON.stringify(home)}\n`)
}

/** Whether a data set has begun with its state in the bucket. */
async function hasState(objects: Objects): Promise<boolean> {
  const names = await objects.names('_state')
  return names.includes('checkpoint.jsonl') || names.includes('log')
}

function keptElsewhere(objects: Objects, { home }: Named): ExportError {
  if (home === null) return unreadable(whereIn(objects))
  if (home.id === IN_BUCKET) return keptInBucket()
  return new ExportError({
    kind: 'config',
    what: `The state of this data set is kept in ${home.folder} on host ${home.host}`,
    where: whereIn(objects),
    next: 'Run there, or bring that folder here and name it as state.path; if it is lost, start over with --fresh.',
  })
}

function keptInBucket(): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The state of this data set is kept in the bucket',
    where: 'state.path',
    next: 'Leave state.path out, choose another load.path, or start over there without it.',
  })
}

function unreadable(where: string, cause?: unknown): ExportError {
  const next = 'Restore it from a backup, or start over with --fresh.'
  return new ExportError({
    kind: 'damaged',
    what: 'The file that names the location of the state cannot be read',
    where,
    next,
    cause,
  })
}

/** The address of the file, since errors name paths below `_state` as those of `state.path`. */
function whereIn(objects: Objects): string {
  return `${objects.driver.address}/${HOME}`
}
