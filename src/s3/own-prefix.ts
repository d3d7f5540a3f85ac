import { ExportError, sideBySide } from '../core/index.ts'
import { holdsPieces, type Owner, ownerOfPiece } from './files/index.ts'
import { type Bucket, Conflict } from './requests/index.ts'

/** Stands in an owner's folder for as long as it is the owner. */
const OWNER = '.owner'
const LEFT = Buffer.from('left in order\n')
const TAKEN = Buffer.from('taken over\n')

/**
 * The names through which one owner changes a data set: `_state/open.<owner>/` in the place of `_state/open/`. Nothing
 * can take a prefix away from somebody, as a folder can be, so an owner loses its rights in another way: whoever takes
 * over changes its `.owner`, ends the epoch of every log that it adds to (see StoredFile), its uploads, and moves what
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

  readonly #isOneOfMany: boolean

  /** ETag of the owner's mark. */
  #etag = ''

  private constructor(bucket: Bucket, common: string, owner: string, isOneOfMany: boolean) {
    this.#bucket = bucket
    this.#common = common
    this.folder = `${common}.${owner}`
    this.#isOneOfMany = isOneOfMany
  }

  /** @param isOneOfMany whether uploads of others, whoever they are, are to go on */
  static async make(bucket: Bucket, common: string, owner: string, isOneOfMany: boolean): Promise<OwnPrefix> {
    const own = new OwnPrefix(bucket, common, owner, isOneOfMany)
    own.#etag = await bucket.put(`${own.folder}/${OWNER}`, new Uint8Array(), { condition: 'absent' })
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
    const mark = await this.#bucket.head(`${this.folder}/${OWNER}`)
    if (mark?.etag !== this.#etag) throw takenOver(this.folder)
  }

  /** Ends what another owner may do. @returns whether there was something in its folder that it did not leave in order */
  async takeOver(owner: string | null): Promise<boolean> {
    const folder = owner === null ? this.#common : `${this.#common}.${owner}`
    const mark = `${folder}/${OWNER}`
    const said = owner === null ? LEFT : await this.#bucket.get(mark)
    // All that was there has gone to another owner: what lies there now came too late.
    if (said === null) {
      await this.#removeFolder(folder)
      return false
    }
    await this.#bucket.put(mark, TAKEN)
    this.#taken.add(folder)
    await this.#abortUploads()
    let found = false
    for await (const { name } of this.#bucket.objects(`${folder}/`)) found ||= name !== mark
    return found && !LEFT.equals(said)
  }

  /**
   * Brings what earlier owners had into this folder. Everything is copied before anything goes, and the mark goes last,
   * so that after a crash the next one finds all of it, in this folder or the one before. Of a file that is in both it
   * takes the longer.
   */
  async settle(): Promise<void> {
    const files = new Map<string, Group>()
    for (const folder of this.#taken) {
      for (const group of await this.#groups(folder)) {
        if (group.isWhole && group.bytes > (files.get(group.file)?.bytes ?? -1)) files.set(group.file, group)
      }
    }
    await sideBySide(files.values(), async ({ folder, file, names }) => {
      for (const name of names) await this.#bucket.copy(name, this.folder + name.slice(folder.length))
      this.#brought.add(`${this.folder}/${file}`)
    })
    for (const folder of this.#taken) await this.#removeFolder(folder)
    this.#taken.clear()
    // One of a process that was killed, or of one that woke up since.
    await this.#abortUploads()
    await this.#sweep()
  }

  /** The files of a folder. */
  async #groups(folder: string): Promise<Iterable<Group>> {
    const groups = new Map<
      string,
      { folder: string; file: string; names: string[]; bytes: number; isWhole: boolean }
    >()
    for await (const { name, size } of this.#bucket.objects(`${folder}/`)) {
      const of = ownerOfPiece(name)
      const file = (of ?? name).slice(folder.length + 1)
      if (file === OWNER) continue
      const group = groups.get(file) ?? { folder, file, names: [], bytes: 0, isWhole: false }
      groups.set(file, group)
      group.names.push(name)
      group.bytes += size
      group.isWhole ||= of === null
    }
    return groups.values()
  }

  /** Of those who are owners no more; one among many leaves those alone that it can't know to be such. */
  #abortUploads(): Promise<void> {
    if (!this.#isOneOfMany) return this.#bucket.abortUploads(isOurs)
    const folders = [this.folder, ...this.#taken].map((folder) => `${folder}/`)
    return this.#bucket.abortUploads((name) => folders.some((folder) => name.startsWith(folder)))
  }

  /** First what files begin with, so that none is there in part, and the owner's mark last. */
  async #removeFolder(folder: string): Promise<void> {
    const names: string[] = []
    for await (const { name } of this.#bucket.objects(`${folder}/`)) names.push(name)
    const remove = (name: string): Promise<void> => this.#bucket.remove(name)
    const mark = `${folder}/${OWNER}`
    await sideBySide(
      names.filter((name) => ownerOfPiece(name) === null && name !== mark),
      remove,
    )
    await sideBySide(
      names.filter((name) => ownerOfPiece(name) !== null),
      remove,
    )
    await remove(mark)
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
    if ((await this.#bucket.head(mark))?.etag !== this.#etag) return
    // Of an upload whose id was lost on the way.
    await this.#abortUploads()
    if (isEmpty) return this.#bucket.remove(mark)
    try {
      await this.#bucket.put(mark, LEFT, { condition: { etag: this.#etag } })
    } catch (error) {
      // Somebody has just taken it over.
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

type Group = {
  readonly folder: string
  /** Its name there. */
  readonly file: string
  /** The objects that it is made of. */
  readonly names: readonly string[]
  readonly bytes: number
  /** Whether the first of them is there. */
  readonly isWhole: boolean
}

function takenOver(folder: string): ExportError {
  return new ExportError(
    'locked',
    'Another run has taken this pipeline over, because this one showed no sign of life',
    `${folder} has no owner`,
    'Let the other one go on; what this one had in hand is asked for again, and nothing is lost or doubled.',
  )
}
