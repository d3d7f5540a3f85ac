import * as z from 'zod'
import { isExportError, sideBySide, takenOver } from '../core/index.ts'
import type { Owner } from './known-objects.ts'
import { abortUploads, type PendingUpload, PendingUploads, pendingUpload } from './pending-uploads.ts'
import { type Bucket, putFirst, requireConditions } from './requests/bucket.ts'
import { Conflict } from './requests/connection.ts'
import { fileOfSegment, holdsSegments } from './stored-file.ts'

/** The object in a staging prefix that says who its owner is. */
const OWNER = '.owner'
const markSchema = z.object({
  /** `held` by its owner, `left` (released), or `taken` over by another. */
  state: z.enum(['held', 'left', 'taken']),
  /** Multipart uploads of the owner that may be under way. */
  uploads: z.array(pendingUpload),
})
type OwnerMark = z.infer<typeof markSchema>

/**
 * The prefix through which one owner changes a data set: `_state/open.<owner>/`, which stands for `_state/open/`. A
 * prefix can't be removed in one step, as a directory can. So a new owner fences the former one in four steps: it changes
 * its `.owner`, ends the epoch of every log that it appends to (see StoredFile), aborts its uploads (see PendingUploads),
 * and moves the sources of its copies.
 */
export class StagingPrefix implements Owner {
  readonly folder: string
  readonly #common: string
  readonly #bucket: Bucket
  /** Prefixes of former owners that are fenced and whose files are not copied yet. */
  readonly #taken = new Set<string>()
  /** Names that were copied from them. */
  readonly #copied = new Set<string>()
  /** Uploads of former owners that may still be under way. */
  readonly #leftUploads: PendingUpload[] = []
  readonly #uploads: PendingUploads
  /** ETag of the mark. */
  #etag = ''

  private constructor(bucket: Bucket, common: string, owner: string) {
    this.#bucket = bucket
    this.#common = common
    this.folder = `${common}.${owner}`
    this.#uploads = new PendingUploads(bucket, (uploads) =>
      this.#mark({ state: 'held', uploads: [...uploads] }),
    )
  }

  static async make(bucket: Bucket, common: string, owner: string): Promise<StagingPrefix> {
    const prefix = new StagingPrefix(bucket, common, owner)
    const mark = bytesOf({ state: 'held', uploads: [] })
    const name = `${prefix.folder}/${OWNER}`
    prefix.#etag = await putFirst(bucket, name, mark)
    // Tested once, before a data set begins.
    if ((await bucket.head('_state/checkpoint.jsonl')) !== null) return prefix
    try {
      await requireConditions(bucket, name, mark)
    } catch (error) {
      throw error instanceof Conflict ? takenOver(`${prefix.folder} has no owner`) : error
    }
    return prefix
  }

  /** The name of a path's object in the bucket. */
  objectName(path: string): string {
    if (path !== this.#common && !path.startsWith(`${this.#common}/`)) return path
    return this.folder + path.slice(this.#common.length)
  }

  has(name: string): boolean {
    return name.startsWith(`${this.folder}/`)
  }

  mayHold(name: string): boolean {
    return this.#taken.size > 0 || this.#copied.has(name)
  }

  /** @throws ExportError `locked` when another owner took over */
  async require(): Promise<void> {
    for (let before = this.#etag; ; before = this.#etag) {
      const mark = await this.#bucket.head(`${this.folder}/${OWNER}`)
      // A write of the mark may be under way.
      if (mark?.etag !== this.#etag) await this.#uploads.saved
      if (mark?.etag === this.#etag) return
      if (this.#etag === before) throw takenOver(`${this.folder} has no owner`)
    }
  }

  uploading<T>(name: string, upload: (unsure: () => void) => Promise<T>): Promise<T> {
    return this.#uploads.track(name, upload)
  }

  /** @throws ExportError `locked` when another owner took over */
  async #mark(mark: OwnerMark): Promise<void> {
    try {
      const condition = { etag: this.#etag }
      this.#etag = await this.#bucket.put(`${this.folder}/${OWNER}`, bytesOf(mark), { condition })
    } catch (error) {
      throw error instanceof Conflict ? takenOver(`${this.folder} has no owner`) : error
    }
  }

  /** Fences another owner. @returns whether its prefix holds something and was not released */
  async takeOver(owner: string | null): Promise<boolean> {
    const folder = owner === null ? this.#common : `${this.#common}.${owner}`
    const last = await this.#end(folder, owner === null)
    // All that was there has gone to another owner: later writes are removed.
    if (last === null) {
      await this.#removeFolder(folder)
      return false
    }
    this.#taken.add(folder)
    this.#leftUploads.push(...last.uploads)
    await abortUploads(this.#bucket, last.uploads)
    let found = false
    for await (const { name } of this.#bucket.objects(`${folder}/`)) found ||= name !== `${folder}/${OWNER}`
    return found && last.state !== 'left'
  }

  /** Marks a prefix as taken. @returns its last mark, with all uploads that the owner saved; null: there is none */
  async #end(folder: string, isCommon: boolean): Promise<OwnerMark | null> {
    const name = `${folder}/${OWNER}`
    for (;;) {
      const found = await this.#bucket.getWhole(name)
      if (found === null && !isCommon) return null
      const last: OwnerMark = found === null ? { state: 'left', uploads: [] } : markOf(found.bytes)
      const condition = found === null ? 'absent' : { etag: found.head.etag }
      try {
        await this.#bucket.put(name, bytesOf({ ...last, state: 'taken' }), { condition })
        return isCommon ? { ...last, state: 'left' } : last
      } catch (error) {
        // Its owner has just saved another upload.
        if (!(error instanceof Conflict)) throw error
      }
    }
  }

  /**
   * Copies the files of former owners into this prefix. Everything is copied before anything is removed, and the mark is
   * removed last. So after a crash the next owner finds every file in one of the prefixes. Of a file that is in both it
   * takes the longer one.
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
      this.#copied.add(`${this.folder}/${file}`)
    })
    // Late requests may have begun more. The marks that name the uploads are removed with the prefixes.
    await abortUploads(this.#bucket, this.#leftUploads)
    for (const folder of this.#taken) await this.#removeFolder(folder)
    this.#taken.clear()
    await this.#sweep()
  }

  /** The files of a prefix. */
  async #groups(folder: string): Promise<Iterable<Group>> {
    const groups = new Map<
      string,
      { folder: string; file: string; names: string[]; bytes: number; isWhole: boolean }
    >()
    for await (const { name, size } of this.#bucket.objects(`${folder}/`)) {
      const of = fileOfSegment(name)
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

  /** Removes first objects before segments, so that no file is there in part, and the mark last. */
  async #removeFolder(folder: string): Promise<void> {
    const names: string[] = []
    for await (const { name } of this.#bucket.objects(`${folder}/`)) names.push(name)
    const mark = `${folder}/${OWNER}`
    await this.#bucket.removeAll(names.filter((name) => fileOfSegment(name) === null && name !== mark))
    await this.#bucket.removeAll(names.filter((name) => fileOfSegment(name) !== null))
    await this.#bucket.remove(mark)
  }

  /** Removes segments without a first object: late requests of a process that was killed. */
  async #sweep(): Promise<void> {
    const whole = new Set<string>()
    const segments: (readonly [name: string, of: string])[] = []
    for await (const { name } of this.#bucket.objects(this.#common.replace(/[^/]*$/, ''))) {
      const of = fileOfSegment(name)
      if (of === null) whole.add(name)
      else segments.push([name, of])
    }
    for (const [name, of] of segments) if (!whole.has(of)) await this.#bucket.remove(name)
  }

  /** Marks the prefix as released, or removes the mark when nothing is in it. */
  async release(): Promise<void> {
    const mark = `${this.folder}/${OWNER}`
    let isEmpty = true
    for await (const { name } of this.#bucket.objects(`${this.folder}/`)) isEmpty &&= name === mark
    await this.#uploads.saved
    if ((await this.#bucket.head(mark))?.etag !== this.#etag) return
    // Of an upload whose id was lost.
    await this.#uploads.end()
    if (isEmpty) return this.#bucket.remove(mark)
    try {
      await this.#mark({ state: 'left', uploads: [] })
    } catch (error) {
      // Another owner has just taken over.
      if (!isExportError(error, 'locked')) throw error
    }
  }
}

/** Whether a name in a folder is that of a file. */
export function isShown(name: string): boolean {
  return name !== OWNER && !holdsSegments(name)
}

function bytesOf(mark: OwnerMark): Uint8Array {
  return Buffer.from(`${JSON.stringify(mark)}\n`)
}

/** A mark that can't be parsed counts as held. */
function markOf(bytes: Uint8Array): OwnerMark {
  try {
    return markSchema.parse(JSON.parse(Buffer.from(bytes).toString()))
  } catch {
    return { state: 'held', uploads: [] }
  }
}

type Group = {
  readonly folder: string
  /** Its name in the prefix. */
  readonly file: string
  /** Its objects. */
  readonly names: readonly string[]
  readonly bytes: number
  /** Whether its first object is there. */
  readonly isWhole: boolean
}
