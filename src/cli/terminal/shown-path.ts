import { relative } from 'node:path'
import { plainLine } from './plain-text.ts'

/** Relative to the working directory where it lies below; addresses as they are. */
export function shownPath(path: string, cwd: string): string {
  if (path.includes('://')) return plainLine(path)
  const short = relative(cwd, path)
  return plainLine(short === '' ? '.' : short.startsWith('..') ? path : short)
}

/** A word of a command line as a POSIX shell needs it. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
