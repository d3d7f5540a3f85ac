import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs'
import { mkdir, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { codeOf, ExportError, type Pipeline } from '../../core/index.ts'

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

const IN_DATA_SETS = ['_manifest.json', '_state']

/**
 * A file that a flag names replaces none of a data set, and no pipeline file. @param what for messages: `The report`
 * @param pipelines whose data sets may still have to be made @throws ExportError `config`
 */
export async function requireApart(
  path: string,
  what: string,
  pipelines: readonly Pick<Pipeline, 'load'>[],
): Promise<void> {
  const refused = (how: string, next: string): ExportError =>
    new ExportError({ kind: 'config', what: `${what} ${how}`, where: path, next })
  const next = 'Choose another name.'
  if (isNoFile(path)) throw refused('is no file', next)
  if (/\.ya?ml$/i.test(path)) throw refused('would have the name of a pipeline file', next)
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    throw refused('is a symbolic link', next)
  const roots = pipelines.flatMap(({ load: { location } }) =>
    location.kind === 'disk' ? [location.root] : [],
  )
  const within = await Promise.all(roots.map((root) => isWithin(path, root)))
  if (isInDataSet(dirname(path)) || within.includes(true))
    throw refused('would lie in the folder of the data set', 'Choose another folder.')
}

function isInDataSet(folder: string): boolean {
  // A folder that is not there is reported where the file is opened.
  if (!existsSync(folder)) return false
  for (let at = realpathSync(folder); ; at = dirname(at)) {
    if (IN_DATA_SETS.some((name) => existsSync(join(at, name)))) return true
    if (at === dirname(at)) return false
  }
}

/** Whether a device, a pipe or a folder has the name: none is replaced by a file. */
function isNoFile(path: string): boolean {
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

/** Whether a file lies below a folder, links resolved. */
export async function isWithin(path: string, folder: string): Promise<boolean> {
  const realPath = join(await realFolder(dirname(path)), basename(path))
  const within = relative(await realFolder(folder), realPath)
  return within.split(sep)[0] !== '..' && !isAbsolute(within)
}
