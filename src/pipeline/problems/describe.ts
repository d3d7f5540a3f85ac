import { distance } from 'fastest-levenshtein'
import { ADDRESS_KEYS, SEARCHES, UNPRINTABLE } from '../../core/index.ts'
import { DOMAIN_EXPECTED, domainFault, mayBeShown } from '../values/addresses.ts'
import { isMapping, namesAt, type Path, type Tree, valueAt } from './tree.ts'

export const IDENTITY_KEYS: ReadonlySet<string> = new Set(
  Object.values(SEARCHES).flatMap(({ by, identity }) => (identity === 'none' ? [] : [by])),
)

/** Keys whose values are never shown, as those of variables: they may hold a secret by mistake. */
const UNSHOWN = new Set<string>(['organization', 'queries', ...IDENTITY_KEYS])

/** Keys of addresses, which are shown if they have no user, password or query. */
const ADDRESSES = new Set<string>([
  ...['base_url', 'token_url', ...ADDRESS_KEYS, 'endpoint', 'table_location', 'uri'],
])

const DOMAINS = new Set(['domains', 'fqdn'])

/** Describes the value at a path without secrets; null: there is none. */
export function describe(tree: Tree, path: Path): string | null {
  const value = valueAt(tree.root, path)
  if (value === undefined) return null
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (isMapping(value)) return 'a mapping'
  const key = path.findLast((part) => typeof part === 'string')
  const names = namesAt(tree, path)
  if (names.length > 0) {
    const variables = names.map((name) => `\${${name}}`).join(' and ')
    return isPlain(path, key, value)
      ? `"${shown(String(value))}" (from ${variables})`
      : `what ${variables} expands to (not shown)`
  }
  // Text instead of a section may be anything, a pasted token for example.
  const isSection = key === undefined || (path.length === 1 && key !== 'name' && key !== 'extends')
  if (
    isSection ||
    key.endsWith('_env') ||
    UNSHOWN.has(key) ||
    (ADDRESSES.has(key) && !isPlain(path, key, value))
  ) {
    return `a ${typeof value} (not shown)`
  }
  if (typeof value === 'string' && DOMAINS.has(key)) return describeDomain(value)
  return typeof value === 'string' ? `"${shown(value)}"` : String(value)
}

/** An e-mail address instead of a domain names a person, and a URL may hold a password. */
export function describeDomain(text: string): string {
  if (text.includes('@') || (text.includes('//') && !mayBeShown(text))) return 'a text (not shown)'
  return `"${shown(text)}"`
}

/** What an invalid value probably meant; empty: it is not known. @param words those that are allowed, if some are */
export function hintFor(tree: Tree, path: Path, words: readonly string[]): string {
  const value = valueAt(tree.root, path)
  if (typeof value !== 'string') return ''
  const key = path.findLast((part) => typeof part === 'string') ?? ''
  // As shells have it. It is not shown: a password may begin with a $.
  if (BARE_VARIABLE.test(value))
    return key.endsWith('_env') ? '; write the name of the variable alone, without $' : BRACES
  if (namesAt(tree, path).length > 0) return ''
  return DOMAINS.has(key) ? '' : didYouMean(value, words)
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: the text shows the reader's own syntax
const BRACES = '; a variable is written with braces, ${NAME}'

/** Not after another $, and not in the middle of a word. */
const BARE_VARIABLE = /(?:^|[^\w$])\$[A-Za-z_]\w*/

export function noDomain(text: string): string {
  return `expected ${DOMAIN_EXPECTED}, found ${describeDomain(text)}: ${domainFault(text)}`
}

/** Whether a value cannot be a secret, whatever its origin: an address, or a time. */
function isPlain(path: Path, key: string | undefined, value: unknown): boolean {
  if (typeof value !== 'string' || key === undefined) return false
  if (path.includes('windows') && key !== 'windows') return value.length <= MAX_WINDOW_TEXT
  return ADDRESSES.has(key) && mayBeShown(value)
}

/** Longer values are neither dates nor lengths. */
const MAX_WINDOW_TEXT = 40

/** Text of a file for messages: shortened, without control and direction characters. */
export function shown(value: string): string {
  const short = value.length > 60 ? `${value.slice(0, 60)}…` : value
  return short.toWellFormed().replace(UNPRINTABLE, '\u{FFFD}')
}

/** The known word that a mistyped one most likely means; null: none is similar. */
export function nearest(word: string, known: Iterable<string>): string | null {
  // The time is quadratic in the length.
  if (word.length > 64) return null
  let best: string | null = null
  let least = Math.max(2, Math.ceil(word.length / 3)) + 1
  for (const candidate of known) {
    const steps = distance(word.toLowerCase(), candidate)
    // Words without a common letter are not similar.
    if (steps < least && steps < Math.max(word.length, candidate.length) - 1) {
      best = candidate
      least = steps
    }
  }
  return best
}

/** `; did you mean `x`?`, or empty. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const match = nearest(word, known)
  return match === null ? '' : `; did you mean \`${match}\`?`
}
