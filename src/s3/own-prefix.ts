import { ExportError } from '../core/index.ts'
import { type Bucket, Conflict } from './bucket.ts'
import type { Owner } from './files.ts'
import { holdsPieces, ownerOfPiece } from './stored-file.ts'

/** Stands in an owner's folder for as long as it is the owner. */
const OWNER = '.owner'
const LEFT = Buffer.from('left in order\n')
const AT_ONCE = 32

/**
 * The names through which one owner changes a data set: `_state/open.<owner>/` in the place of `_state/open/`. Nothing
 * can take a prefix away from somebody, as a folder can be, so an owner loses its rights in another way: whoever takes
 * over removes its `.owner`, ends the epoch of every log that it adds to (see StoredFile), its uploads, and moves what
 * it copies from.
 */
export class OwnPrefix implements Owner {
  readonly folder: string
  readonly #common: string
  readonly #bucket: Bucket
  /** Folders of earlier owners whose rights are ended and whose files are still to come. */
  readonly #taken = new Set<string>()
  /** Names of what came from there. */
  readonly #brought = new Set<string>()

  private constructor(bucket: Bucket, common: string, owner: string) {
    this.#bucket = bucket
    this.#common = common
    this.folder = `${common}.${owner}`
  }

  static async make(bucket: Bucket, common: string, owner: string): Promise<OwnPrefix> {
    const own = new OwnPrefix(bucket, common, owner)
    await bucket.put(`${own.folder}/${OWNER}`, new Uint8Array(), { condition: 'absent' })
    return own
  }

  /** What a path is called in the bucket. */
  place(path: string): string {
    if (path !== this.#common && !path.startsWith(`${this.#common}/`)) return path
    return this.folder + path.slice(this.#common.length)
  }

  has(name: string): boolean {
    return name.startsWith(`${this.folder}/`)
  }

  mayHold(name: string): boolean {
    return this.#taken.size > 0 || this.#brought.has(name)
  }

  /** @throws ExportError `locked` when another owner took over */
  async require(): Promise<void> {
    if ((await this.#bucket.head(`${this.folder}/${OWNER}`)) === null) throw takenOver(this.folder)
  }

  /** Ends what another owner may do. @returns whether there was something in its folder that it did not leave in order */
  async takeOver(owner: string | null): Promise<boolean> {
    const folder = owner === null ? this.#common : `${this.#common}.${owner}`
    const mark = `${folder}/${OWNER}`
    const said = owner === null ? LEFT : await this.#bucket.get(mark)
    await this.#bucket.remove(mark)
    await this.#bucket.abortUploads(isOurs)
    this.#taken.add(folder)
    let found = false
    for await (const { name } of this.#bucket.objects(`${folder}/`)) {
      found = true
      if (name !== mark) break
    }
    return found && !(said !== null && LEFT.equals(said))
  }

  /** Brings what earlier owners had into this folder. */
  async settle(): Promise<void> {
    for (const folder of this.#taken) {
      const names = this.#bucket.objects(`${folder}/`)
      const lane = async (): Promise<void> => {
        for await (const { name } of { [Symbol.asyncIterator]: () => ({ next: () => names.next() }) }) {
          const here = this.folder + name.slice(folder.length)
          await this.#bucket.copy(name, here)
          this.#brought.add(here)
          await this.#bucket.remove(name)
        }
      }
      await allOf(Array.from({ length: AT_ONCE }, lane))
    }
    this.#taken.clear()
    // One of a process that was killed, or of one that woke up since.
    await this.#bucket.abortUploads(isOurs)
    await this.#sweep()
  }

  /** Removes pieces of what is no more: requests of a process that was killed, which came to the store after all. */
  async #sweep(): Promise<void> {
    const whole = new Set<string>()
    const pieces: (readonly [name: string, of: string])[] = []
    for await (const { name } of this.#bucket.objects(this.#common.replace(/[^/]*$/, ''))) {
      const of = ownerOfPiece(name)
      if (of === null) whole.add(name)
      else pieces.push([name, of])
    }
    for (const [name, of] of pieces) if (!whole.has(of)) await this.#bucket.remove(name)
  }

  /** Says that what is here was left in order, or leaves nothing. */
  async leave(): Promise<void> {
    const mark = `${this.folder}/${OWNER}`
    let isEmpty = true
    for await (const { name } of this.#bucket.objects(`${this.folder}/`)) isEmpty &&= name === mark
    const head = await this.#bucket.head(mark)
    // Somebody took it over.
    if (head === null) return
    // Of an upload whose id was lost on the way.
    await this.#bucket.abortUploads(isOurs)
    if (isEmpty) return this.#bucket.remove(mark)
    try {
      await this.#bucket.put(mark, LEFT, { condition: { etag: head.etag } })
    } catch (error) {
      if (!(error instanceof Conflict)) throw error
    }
  }
}

/** Whether a name in a folder is one that people and the rest of Spillway see. */
export function isShown(name: string): boolean {
  return name !== OWNER && !holdsPieces(name)
}

/** Below a prefix that is the bucket itself there may be more than our data set. */
export function isOurs(name: string): boolean {
  return /^(?:_|credentials\/|reports\/)/.test(name)
}

async function allOf(works: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(works)) if (result.status === 'rejected') throw result.reason
}

function takenOver(folder: string): ExportError {
  return new ExportError(
    'locked',
    'Another run has taken this pipeline over, because this one showed no sign of life',
    `${folder} has no owner`,
    'Let the other one go on; what this one had in hand is asked for again, and nothing is lost or doubled.',
  )
}
