import { z } from 'zod'
import { ExportError, isExportError, sideBySide } from '../core/index.ts'
import { abortUploads, type BegunUpload, BegunUploads, begunUpload } from './begun-uploads.ts'
import { putFirst, requireConditions } from './conditional-writes.ts'
import { holdsPieces, type Owner, ownerOfPiece } from './files/index.ts'
import { type Bucket, Conflict } from './requests/index.ts'

/** Stands in an owner's folder for as long as it is the owner. */
const OWNER = '.owner'
const markSchema = z.object({
  /** `held` by its owner, `left` in order, or `taken` over by another. */
  state: z.enum(['held', 'left', 'taken']),
  /** What it has in hand; what it may have left, once it was taken over. */
  uploads: z.array(begunUpload),
})
type Mark = z.infer<typeof markSchema>

/**
 * The names through which one owner changes a data set: `_state/open.<owner>/` in the place of `_state/open/`. Nothing
 * can take a prefix away from somebody, as a folder can be, so an owner loses its rights in another way: whoever takes
 * over changes its `.owner`, ends the epoch of every log that it adds to (see StoredFile), its uploads (see BegunUploads),
 * and moves what it copies from.
 */
export class OwnPrefix implements Owner {
  readonly folder: string
  readonly #common: string
  readonly #bucket: Bucket
  /** Folders of earlier owners whose rights are ended and whose files are still to come. */
  readonly #taken = new Set<string>()
  /** Names of what came from there. */
  readonly #brought = new Set<string>()
  /** Uploads of earlier owners that may still be under way. */
  readonly #left: BegunUpload[] = []
  readonly #uploads: BegunUploads
  /** ETag of the owner's mark. */
  #etag = ''

  private constructor(bucket: Bucket, common: string, owner: string) {
    this.#bucket = bucket
    this.#common = common
    this.folder = `${common}.${owner}`
    this.#uploads = new BegunUploads(bucket, (uploads) =>
      this.#mark({ state: 'held', uploads: [...uploads] }),
    )
  }

  static async make(bucket: Bucket, common: string, owner: string): Promise<OwnPrefix> {
    const own = new OwnPrefix(bucket, common, owner)
    const mark = bytesOf({ state: 'held', uploads: [] })
    const name = `${own.folder}/${OWNER}`
    own.#etag = await putFirst(bucket, name, mark)
    // Asked once: where a data set has begun, its store was found fit for it.
    if ((await bucket.head('_state/checkpoint.jsonl')) !== null) return own
    try {
      await requireConditions(bucket, name, mark)
    } catch (error) {
      throw error instanceof Conflict ? takenOver(own.folder) : error
    }
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
    for (let before = this.#etag; ; before = this.#etag) {
      const mark = await this.#bucket.head(`${this.folder}/${OWNER}`)
      // Its own mark may have been on its way.
      if (mark?.etag !== this.#etag) await this.#uploads.saved
      if (mark?.etag === this.#etag) return
      if (this.#etag === before) throw takenOver(this.folder)
    }
  }

  uploading<T>(name: string, upload: (unsure: () => void) => Promise<T>): Promise<T> {
    return this.#uploads.run(name, upload)
  }

  /** @throws ExportError `locked` when another owner took over */
  async #mark(mark: Mark): Promise<void> {
    try {
      const condition = { etag: this.#etag }
      this.#etag = await this.#bucket.put(`${this.folder}/${OWNER}`, bytesOf(mark), { condition })
    } catch (error) {
      throw error instanceof Conflict ? takenOver(this.folder) : error
    }
  }

  /** Ends what another owner may do. @returns whether there was something in its folder that it did not leave in order */
  async takeOver(owner: string | null): Promise<boolean> {
    const folder = owner === null ? this.#common : `${this.#common}.${owner}`
    const said = await this.#end(folder, owner === null)
    // All that was there has gone to another owner: what lies there now came too late.
    if (said === null) {
      await this.#removeFolder(folder)
      return false
    }
    this.#taken.add(folder)
    this.#left.push(...said.uploads)
    await abortUploads(this.#bucket, said.uploads)
    let found = false
    for await (const { name } of this.#bucket.objects(`${folder}/`)) found ||= name !== `${folder}/${OWNER}`
    return found && said.state !== 'left'
  }

  /** Changes the mark of a folder. @returns what it said, of uploads all that came to be on record; null: there is none */
  async #end(folder: string, isCommon: boolean): Promise<Mark | null> {
    const name = `${folder}/${OWNER}`
    for (;;) {
      const found = await this.#bucket.getWhole(name)
      if (found === null && !isCommon) return null
      const said: Mark = found === null ? { state: 'left', uploads: [] } : markOf(found.bytes)
      const condition = found === null ? 'absent' : { etag: found.head.etag }
      try {
        await this.#bucket.put(name, bytesOf({ ...said, state: 'taken' }), { condition })
        return isCommon ? { ...said, state: 'left' } : said
      } catch (error) {
        // Its owner has just put another upload on record.
        if (!(error instanceof Conflict)) throw error
      }
    }
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
    // What a request began that came late; with the folders goes what is on record of them.
    await abortUploads(this.#bucket, this.#left)
    for (const folder of this.#taken) await this.#removeFolder(folder)
    this.#taken.clear()
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
    await this.#uploads.saved
    if ((await this.#bucket.head(mark))?.etag !== this.#etag) return
    // Of one whose id was lost on the way.
    await this.#uploads.end()
    if (isEmpty) return this.#bucket.remove(mark)
    try {
      await this.#mark({ state: 'left', uploads: [] })
    } catch (error) {
      // Somebody has just taken it over.
      if (!isExportError(error, 'locked')) throw error
    }
  }
}

/** Whether a name in a folder is one that people and the rest of Spillway see. */
export function isShown(name: string): boolean {
  return name !== OWNER && !holdsPieces(name)
}

function bytesOf(mark: Mark): Uint8Array {
  return Buffer.from(`${JSON.stringify(mark)}\n`)
}

/** What makes no sense says nothing. */
function markOf(bytes: Uint8Array): Mark {
  try {
    return markSchema.parse(JSON.parse(Buffer.from(bytes).toString()))
  } catch {
    return { state: 'held', uploads: [] }
  }
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
