import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'

/** A folder without symbolic links, as far as it is there. */
export async function realFolder(folder: string): Promise<string> {
  try {
    return await realpath(folder)
  } catch {
    return folder === dirname(folder) ? folder : join(await realFolder(dirname(folder)), basename(folder))
  }
}

/** Where in a folder a file lies or would lie, links followed, name by name; null: elsewhere. */
export async function pathWithin(path: string, folder: string): Promise<readonly string[] | null> {
  const place = join(await realFolder(dirname(path)), basename(path))
  const within = relative(await realFolder(folder), place)
  const names = within.split(sep)
  return names[0] === '..' || isAbsolute(within) ? null : names
}
