import { resolve, sep } from 'node:path'

/** The full path of a file of the data set at `root`. @throws Error when it would lie outside */
export function placeIn(root: string, path: string): string {
  const full = resolve(root, path)
  // Names are encoded before they get here; this is the second lock on the same door.
  if (full !== root && !isBelow(full, root)) throw new Error(`a path that leaves the data set`)
  return full
}

export function isBelow(full: string, folder: string): boolean {
  return full.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}
