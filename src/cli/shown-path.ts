import { relative } from 'node:path'
import { plainLine } from './plain-text.ts'

/** Relative to the working directory where it lies below; addresses as they are. */
export function shownPath(path: string, cwd: string): string {
  if (path.includes('://')) return plainLine(path)
  const short = relative(cwd, path)
  return plainLine(short === '' ? '.' : short.startsWith('..') ? path : short)
}
