import { randomBytes } from 'node:crypto'
import { ExportError } from '../core/index.ts'
import { type Chunks, type Condition, Conflict, type Driver, PART_BYTES, unfit } from './driver.ts'

/** The objects of a data set. Methods throw what {@link Driver} throws. */
export class Objects {
  constructor(readonly driver: Driver) {}

  /**
   * In parts if it is large. By its mark, a write that is repeated since the response was lost knows its own object.
   * @returns its ETag @throws Conflict when the condition does not hold, or did not, as when another owner has removed it
   */
  async write(
    name: string,
    chunks: Chunks,
    condition: Condition,
    mark = randomBytes(8).toString('hex'),
  ): Promise<string> {
    const write = { mark, condition }
    const { beginning, rest } = await firstBytes(chunks)
    try {
      if (rest === null) return await this.driver.put(name, Buffer.concat(beginning), write)
      return await this.driver.upload(name, rest, write)
    } catch (error) {
      if (!(error instanceof Conflict)) throw error
      const found = await this.driver.head(name)
      if (found?.mark === write.mark) return found.etag
      throw error
    }
  }

  /** The file in chunks. @throws ExportError `storage` when there is none, or it changes meanwhile */
  async *stream(path: string): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const get = (start: number, etag: string | null) =>
      this.driver.get(path, [start, start + PART_BYTES], etag)
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

  async names(folder: string): Promise<readonly string[]> {
    const start = folder === '' ? '' : `${folder}/`
    const names = new Set<string>()
    for await (const { name } of this.driver.list(start, false)) {
      if (name !== start) names.add(name.slice(start.length).replace(/\/$/, ''))
    }
    return [...names].sort()
  }
}

export function gone(path: string): ExportError {
  return new ExportError({
    kind: 'storage',
    what: 'The object is gone',
    where: path,
    next: 'Check that nothing else clears load.path, then run again.',
  })
}

/** @returns all chunks if they fit into one request, else `rest` with all of them */
export async function firstBytes(chunks: Chunks) {
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

/** An ETag that no object has. */
const NO_ETAG = '"00000000000000000000000000000000"'

/**
 * Without conditions two runs would overwrite each other's files unnoticed. @param name of an object that exists
 * @throws ExportError `config` naming the one that the store ignores; Conflict: the object is gone, taken over
 */
export async function requireConditions(objects: Objects, name: string, content: Uint8Array): Promise<void> {
  const conditions: readonly [header: string, condition: Condition][] = [
    ['If-None-Match', 'absent'],
    ['If-Match', { etag: NO_ETAG }],
  ]
  const isHonoured = (condition: Condition): Promise<boolean> =>
    objects.write(name, [content], condition).then(
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
    await objects.driver.remove(name)
    if (wasGone) throw new Conflict()
    throw unfit(objects.driver.address, `ignores ${header}`)
  }
}
