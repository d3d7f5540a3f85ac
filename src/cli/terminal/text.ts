import { relative } from 'node:path'
import { UNPRINTABLE } from '../../core/index.ts'

export { bytesText as bytes, counted, countText as count } from '../../core/index.ts'

/** Foreign text without control characters (escape sequences) and direction marks; line ends, tabs stay. */
export function plainText(text: string): string {
  return text.toWellFormed().replace(UNPRINTABLE, (character) => (/[\n\t]/.test(character) ? character : ''))
}

export function plainLine(text: string): string {
  return plainText(text.replace(/[\r\n\t\u2028\u2029]+/g, ' '))
}

/** JSON for terminals and files: characters that {@link plainText} removes are escaped. */
export function plainJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, escaped)
}

function escaped(character: string): string {
  let text = ''
  for (let unit = 0; unit < character.length; unit++) {
    text += `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`
  }
  return text
}

/** A path, relative if it is below the working directory; addresses stay. */
export function shownPath(path: string, cwd: string): string {
  if (path.includes('://')) return plainLine(path)
  const short = relative(cwd, path)
  return plainLine(short === '' ? '.' : short.startsWith('..') ? path : short)
}

/** `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h` */
export function duration(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  const hours = Math.round(minutes / 60)
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** An estimated time, rounded so that it does not change all the time: `15 s`, `4 min`, `2 h 5 min`, `4 d 3 h` */
export function roughly(ms: number): string {
  const seconds = Math.max(5, Math.ceil(ms / 5000) * 5)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.ceil(ms / 60_000)
  return minutes < 60 ? `${minutes} min` : duration(minutes * 60_000)
}

/** `0:07`, `12:40`, `3:02:11` */
export function stopwatch(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  const two = (value: number): string => String(value).padStart(2, '0')
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`
}
