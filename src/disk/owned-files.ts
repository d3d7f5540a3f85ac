import { closeSync, fstatSync, renameSync, type Stats, unlinkSync } from 'node:fs'
import { link, rm, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ExportError, type FileChunks, hasCode, nameInUse } from '../core/index.ts'
import { type Folders, linkError, pathIn } from './folders.ts'
import { createFile, fsyncFile, openToAppend, statOf, writeChunks } from './open-file.ts'
import type { StagingDirectory } from './staging-directory.ts'
import { isAbsent, nullIfAbsent, unlessAbsent } from './storage-error.ts'

const COMMITS = '_state/log/'

/** Changes of the files of a data set, through the staging directory of an owner. */
export class OwnedFiles {
  readonly #folders: Folders
  readonly #staging: StagingDirectory
  readonly #fileMode: number

  constructor(folders: Folders, staging: StagingDirectory, fileMode: number) {
    this.#folders = folders
    this.#staging = staging
    this.#fileMode = fileMode
  }

  async create(path: string | (() => string), chunks: FileChunks): Promise<boolean> {
    const temporary = await this.#write(chunks)
    return this.#moveTo(temporary, this.#locate(typeof path === 'string' ? path : path()), false)
  }

  /** What is appended after the rights have ended does not count: the claim of the next owner says how much does. */
  async extend(path: string, size: number, chunks: Iterable<Uint8Array>): Promise<void> {
    await appending(this.#folders.checked(path), (file) => {
      if (fstatSync(file).size !== size)
        throw new ExportError({
          kind: 'damaged',
          what: 'The file has changed since it was last written',
          where: path,
          next: 'Check that nothing else writes below load.path, then run again: what is lost is requested anew.',
        })
      writeChunks(file, chunks)
    })
    await this.#staging.require()
  }

  async fsync(path: string): Promise<void> {
    const full = this.#folders.checked(path)
    await appending(full, () => {})
    await this.#folders.fsync(dirname(full))
  }

  async replace(path: string, chunks: Iterable<string | Uint8Array>, mode?: number): Promise<void> {
    await this.#moveTo(await this.#write(chunks, mode), this.#locate(path), true)
  }

  /**
   * Keeps the former name until the new one is on the disk: POSIX lets a power loss undo either change of a rename.
   * An owner that has just lost its rights may still do it: it gives the only name that the next owner could give.
   */
  async publish(from: string, to: string): Promise<void> {
    const [source, target] = [this.#locate(from), this.#locate(to)]
    const folders = this.#folders
    await this.#staging.require()
    if (file(this.#folders.find(from)) === null) {
      if (file(this.#folders.find(to)) !== null) return
      throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    }
    await folders.naming(dirname(target), async () => {
      folders.guard.check(dirname(target))
      if (!(await this.#addName(source, target))) throw nameInUse(to)
    })
    await unlink(source).catch(nullIfAbsent)
    await folders.fsync(dirname(source))
  }

  async remove(path: string): Promise<void> {
    const full = this.#locate(path)
    if (path.startsWith(COMMITS)) return this.#removeCommit(path)
    const gone = this.#staging.temporary()
    try {
      if (this.#folders.find(path) !== null) await this.#move(full, gone)
    } catch (error) {
      if (!isAbsent(error)) throw error
    }
    await this.#staging.require()
    await rm(gone, { recursive: true, force: true })
    // Also if the file was missing: a crash may have left its folder empty.
    await this.#folders.unnaming(dirname(full), !path.startsWith('_state/'))
  }

  /** A commit is removed when no owner needs it again, whichever removes it and whether it comes back after a crash. */
  async #removeCommit(path: string): Promise<void> {
    await this.#staging.require()
    unlessAbsent(() => unlinkSync(this.#folders.checked(path)))
  }

  async takeOver(owners: Iterable<string>): Promise<void> {
    for (const owner of owners) await this.#staging.takeOver(owner)
    await this.#staging.fsync()
  }

  #locate(path: string): string {
    return pathIn(this.#folders.root, path)
  }

  /** Writes a temporary file and fsyncs it. @returns its path */
  async #write(chunks: FileChunks, mode = this.#fileMode): Promise<string> {
    const full = this.#staging.temporary()
    const file = createFile(full, mode)
    try {
      if (Symbol.asyncIterator in chunks) for await (const chunk of chunks) writeChunks(file, [chunk])
      else writeChunks(file, chunks)
      await fsyncFile(file)
    } catch (error) {
      await rm(full, { force: true })
      throw error
    } finally {
      closeSync(file)
    }
    return full
  }

  /** @returns false: a file has the name, and it may not be replaced */
  async #moveTo(temporary: string, full: string, mayReplace: boolean): Promise<boolean> {
    let moved = false
    try {
      const folders = this.#folders
      await folders.naming(dirname(full), async () => {
        // Work is repeated if the folder vanished, but not once the file was there.
        if (moved) return
        folders.guard.check(dirname(full))
        // No other owner creates the file now: former ones have no staging directory, and the next removes this one.
        if (file(statOf(full)) !== null && !mayReplace) return await this.#staging.require()
        await this.#move(temporary, full)
        moved = true
      })
    } finally {
      if (!moved) await rm(temporary, { force: true })
    }
    return moved
  }

  /** Gives a second name; a file system without links moves the file at once. @returns false: another file has it */
  async #addName(from: string, to: string): Promise<boolean> {
    try {
      await link(from, to)
    } catch (error) {
      // After a crash, or by a former owner at this moment, it may have the name already.
      const [before, there] = [file(statOf(from)), file(statOf(to))]
      if (there !== null) return before === null || before.ino === there.ino
      if (!hasCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'ENOENT')) throw error
      await this.#move(from, to)
    }
    return true
  }

  async #move(from: string, to: string): Promise<void> {
    try {
      renameSync(from, to)
    } catch (error) {
      // An owner that lost its rights makes no folder again.
      if (isAbsent(error)) await this.#staging.require()
      throw error
    }
  }
}

/** Forces to the disk what is appended, also what was before. */
async function appending(full: string, append: (file: number) => void): Promise<void> {
  const file = openToAppend(full)
  try {
    append(file)
    await fsyncFile(file)
  } finally {
    closeSync(file)
  }
}

/** @throws where something other than a file has the name */
function file(found: Stats | null): Stats | null {
  if (found?.isSymbolicLink()) throw linkError()
  if (found?.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  return found
}
