import { randomBytes } from 'node:crypto'
import { ExportError, getOrInsert, nameInUse, type Serial, serial } from '../core/index.ts'
import { type Chunks, type Condition, Conflict, type Driver, PART_BYTES } from './driver.ts'

/** Rejects with `locked` once another owner took over. */
export type RequireLock = () => Promise<void>

// Each time a write of a former owner arrived meanwhile, also of one that has ended long ago.
const MAX_ATTEMPTS = 5

/**
 * Names of log entries and sealed shards are used once: that they do not exist is enough. For others the owner checks
 * its rights, and writes under the ETag that it last saw: a late write is overwritten by the next owner, or refused.
 */
export class OwnedObjects {
  readonly #driver: Driver
  readonly #marker: string
  readonly #requireLock: RequireLock
  /** ETags as this owner last saw them; null: there was no object. */
  readonly #seen = new Map<string, string | null>()
  /** Replacements of a path come one at a time. */
  readonly #turns = new Map<string, Serial>()

  /** @param marker an empty object that goes when another owner takes over */
  constructor(driver: Driver, marker: string, requireLock: RequireLock) {
    this.#driver = driver
    this.#marker = marker
    this.#requireLock = requireLock
  }

  async create(path: string, chunks: Chunks): Promise<boolean> {
    if (!isUsedOnce(path)) await this.#requireLock()
    try {
      this.#seen.set(path, await writeObject(this.#driver, path, chunks, 'absent'))
      return true
    } catch (error) {
      if (!(error instanceof Conflict)) throw error
      const isThere = (await this.#driver.head(path)) !== null
      // Who removed it may have taken over.
      await this.#requireLock()
      if (isThere) return false
      throw new ExportError({
        kind: 'storage',
        what: 'The store did not take the object, although it has none of this name',
        where: path,
        next: 'Wait some minutes, then run again; the run resumes after its last committed page.',
      })
    }
  }

  /** An upload has a name from its beginning, so a large one is copied on the server once its own is known. */
  async build(chunks: Chunks, path: () => string): Promise<void> {
    const { beginning, rest } = await firstBytes(copies(chunks))
    if (rest === null) {
      await this.create(path(), beginning)
      return
    }
    // A crash leaves a sealed shard that no commit names.
    const upload = `${SEALED}/0.${randomBytes(8).toString('hex')}`
    try {
      await this.create(upload, rest)
    } finally {
      // The next owner may have aborted it.
      await this.#requireLock()
    }
    await this.#copy(upload, path())
    await this.remove(upload)
  }

  async replace(path: string, chunks: Iterable<Uint8Array>): Promise<void> {
    // A repeated write needs them again.
    const all = [...chunks]
    await getOrInsert(this.#turns, path, serial)(() => this.#replace(path, all))
  }

  async #replace(path: string, chunks: readonly Uint8Array[]): Promise<void> {
    if (chunks.every(({ byteLength }) => byteLength === 0)) return this.#copyMarker(path)
    for (let attempt = 1; ; attempt++) {
      try {
        const etag = await writeObject(this.#driver, path, chunks, await this.#conditionFor(path))
        this.#seen.set(path, etag)
        return
      } catch (error) {
        if (!(error instanceof Conflict)) throw error
        await this.#requireLock()
        if (attempt === MAX_ATTEMPTS) throw changedByOthers(path)
        this.#seen.delete(path)
      }
    }
  }

  /** What says something by being there alone, as `_SUCCESS` does: a copy that is late finds nothing to copy. */
  async #copyMarker(path: string): Promise<void> {
    this.#seen.delete(path)
    await this.#copy(this.#marker, path)
  }

  /** The next owner may have moved or removed the object meanwhile. */
  async #copy(from: string, to: string): Promise<void> {
    await this.#driver.copy(from, to).catch(async (error: unknown) => {
      await this.#requireLock()
      throw error
    })
  }

  async #conditionFor(path: string): Promise<Condition> {
    let etag = this.#seen.get(path)
    if (etag === undefined) etag = (await this.#driver.head(path))?.etag ?? null
    // Checked last: as long as this is the owner, the ETag seen is no later owner's.
    await this.#requireLock()
    return etag === null ? 'absent' : { etag }
  }

  /** Copies the object on the server, then removes its source. After a crash between the two both exist, with one mark. */
  async publish(from: string, to: string): Promise<void> {
    const driver = this.#driver
    await this.#requireLock()
    const [source, target] = await Promise.all([driver.head(from), driver.head(to)])
    if (source === null) {
      if (target !== null) return
      throw gone(from)
    }
    if (target === null) {
      await this.#copy(from, to)
    } else if (target.size !== source.size || target.mark === null || target.mark !== source.mark) {
      throw nameInUse(to)
    }
    await driver.remove(from)
    this.#seen.delete(from)
  }

  async remove(path: string): Promise<void> {
    if (!isUsedOnce(path)) await this.#requireLock()
    await this.#driver.remove(path)
    this.#seen.delete(path)
  }
}

/**
 * In parts if it is large. By its mark, a write that is repeated since the response was lost knows its own object.
 * @returns its ETag @throws Conflict when the condition does not hold, or did not, as when another owner has removed it
 */
export async function writeObject(
  driver: Driver,
  name: string,
  chunks: Chunks,
  condition: Condition,
): Promise<string> {
  const write = { mark: randomBytes(8).toString('hex'), condition }
  const { beginning, rest } = await firstBytes(chunks)
  try {
    if (rest === null) return await driver.put(name, Buffer.concat(beginning), write)
    return await driver.upload(name, rest, write)
  } catch (error) {
    if (!(error instanceof Conflict)) throw error
    const found = await driver.head(name)
    if (found?.mark === write.mark) return found.etag
    throw error
  }
}

/** @returns all chunks if they fit into one request, else `rest` with all of them */
async function firstBytes(chunks: Chunks) {
  const from = Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
  const beginning: Uint8Array[] = []
  for (let size = 0; size <= PART_BYTES; ) {
    const next = await from.next()
    if (next.done === true) return { beginning, rest: null }
    beginning.push(next.value)
    size += next.value.byteLength
  }
  const rest = async function* (): AsyncGenerator<Uint8Array> {
    yield* beginning.splice(0)
    for (;;) {
      const next = await from.next()
      if (next.done === true) return
      yield next.value
    }
  }
  return { beginning, rest: rest() }
}

async function* copies(chunks: Chunks): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) yield new Uint8Array(chunk)
}

export const SEALED = '_state/sealed'

/** A name that no later owner gives to another object. */
function isUsedOnce(path: string): boolean {
  return /^_state\/(?:log|sealed)\//.test(path)
}

export function changedByOthers(path: string): ExportError {
  return new ExportError({
    kind: 'locked',
    what: 'Another process has changed the object meanwhile',
    where: path,
    next: 'See that one pipeline alone writes to this load.path, then run again; what is committed stays.',
  })
}

export function gone(path: string): ExportError {
  return new ExportError({
    kind: 'storage',
    what: 'The object is gone',
    where: path,
    next: 'Check that nothing else clears load.path, then run again.',
  })
}
