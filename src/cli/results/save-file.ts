import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { mkdir, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { codeOf, ExportError } from '../../core/index.ts'

type Content = string | Uint8Array | AsyncIterable<string>

/** Saves for the owner alone. @param what for messages: `The report` @throws ExportError `storage` */
export async function saveFile(path: string, content: Content, what: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await replaceFile(path, content, 0o600)
  } catch (error) {
    // It may also be why the content cannot be made.
    if (error instanceof ExportError) throw error
    const next = 'Choose a folder that can be written, or free some space.'
    const message = `${what} cannot be written: ${codeOf(error)}`
    throw new ExportError({ kind: 'storage', what: message, where: path, next, cause: error })
  }
}

/** @throws ExportError `storage` when a device, a pipe or a folder has the name */
export async function replaceFile(path: string, content: Content, mode: number): Promise<void> {
  if (isNoFile(path)) {
    const next = 'Choose another name.'
    throw new ExportError({ kind: 'storage', what: 'It is no file', where: path, next })
  }
  // The name has an ending of its own: collectors of metrics look for *.prom.
  const unfinished = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}`)
  await removeUnfinished(path)
  try {
    await writeFile(unfinished, content, { flag: 'wx', mode, flush: true })
    await rename(unfinished, path)
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {})
    throw error
  }
}

/** Removes what killed commands left of a file: nobody has written to it for a minute. */
async function removeUnfinished(path: string): Promise<void> {
  const start = `.${basename(path)}.`
  const names = await readdir(dirname(path)).catch(() => [])
  for (const name of names) {
    if (!name.startsWith(start) || !/^[0-9a-f]{12}$/.test(name.slice(start.length))) continue
    const left = join(dirname(path), name)
    const { mtimeMs } = await stat(left).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (mtimeMs < Date.now() - 60_000) await rm(left, { force: true }).catch(() => {})
  }
}

/** Whether a device, a pipe or a folder has the name: none is replaced by a file. */
export function isNoFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === false
}

export async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([one, other].map((path) => realpath(path).catch(() => null)))
  return a !== null && a === b
}

/** A folder with symbolic links resolved, as far as it exists. */
async function realFolder(folder: string): Promise<string> {
  try {
    return await realpath(folder)
  } catch {
    return folder === dirname(folder) ? folder : join(await realFolder(dirname(folder)), basename(folder))
  }
}

/** The path of a file within a folder, links resolved, name by name; null: it is not within it. */
export async function pathWithin(path: string, folder: string): Promise<readonly string[] | null> {
  const realPath = join(await realFolder(dirname(path)), basename(path))
  const within = relative(await realFolder(folder), realPath)
  const names = within.split(sep)
  return names[0] === '..' || isAbsolute(within) ? null : names
}
