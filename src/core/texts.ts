import type { Pipeline } from './pipeline.ts'

/** `1,234,567` */
export function countText(value: number): string {
  // Intl takes a fifth of the start of a command for this.
  return String(Math.round(value)).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `1 shard`, `24 shards` */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${countText(value)} ${value === 1 ? one : many}`
}

const MAX_LINES_NAMED = 10

/** `line 4`; `lines 4, 7, 9`; of more than ten the first, and how many: `lines 1, 2, … (25)`. */
export function linesText(numbers: readonly number[]): string {
  const first = numbers.slice(0, MAX_LINES_NAMED).join(', ')
  const more = numbers.length > MAX_LINES_NAMED ? `, … (${numbers.length})` : ''
  return `${numbers.length === 1 ? 'line' : 'lines'} ${first}${more}`
}

/** `812 B`, `8.1 MB`: decimal units. */
export function bytesText(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
  let unit = 0
  let rest = value
  while (rest >= 999.95 && unit < units.length - 1) {
    rest /= 1000
    unit++
  }
  return `${unit === 0 ? rest : rest.toFixed(1)} ${units[unit]}`
}

/** Control characters (those of escape sequences among them), direction marks, and line breaks by another name. */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Foreign text on one line, with single spaces and nothing that does not print. */
export function oneLine(text: string): string {
  return text.toWellFormed().replace(UNPRINTABLE, ' ').replace(/\s+/g, ' ').trim()
}

/** Whether a string is printable ASCII. Other characters could end an HTTP header and begin another. */
export function isHeaderText(text: string): boolean {
  return /^[\x20-\x7e]+$/.test(text)
}

/** @param options `subdomains`: `*.localhost` too. Only without secrets: some resolvers send it out (RFC 6761, 6.3). */
export function isLoopback(hostname: string, { subdomains = false } = {}): boolean {
  return (
    /^(?:localhost|\[?::1\]?|127\.\d+\.\d+\.\d+)$/.test(hostname) ||
    (subdomains && hostname.endsWith('.localhost'))
  )
}

/** Quotes a word for a POSIX shell, if needed. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** The command that runs a pipeline, for messages, with the flag that says where its data set lies. */
export function runCommand({ file, load, locations }: Pick<Pipeline, 'file' | 'load' | 'locations'>): string {
  const output = locations['load.path'] === '--output' ? ` --output ${shellWord(load.pathAsGiven)}` : ''
  return `spillway run ${shellWord(file)}${output}`
}

/** A record by the names that scripts read: `searchesPer1000Rows` becomes `searches_per_1000_rows`, `keySha256` `key_sha256`. */
export function inSnakeCase<V>(record: Readonly<Record<string, V>>): Readonly<Record<string, V>> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name.replace(/\d+(?=[A-Z])|[A-Z]/g, (part) => `_${part.toLowerCase()}`),
      value,
    ]),
  )
}

/** The parsed values of a shorter text always fit into memory. */
const MODEST_BYTES = 1 << 20
// A value takes some seventy bytes of memory. The largest page, 10,000 items with lists, has a tenth of this limit.
const MAX_VALUES = 2_000_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

/** Whether the memory of its values could exceed what is available: `[{},{},…` has three bytes for each value. */
export function hasTooManyValues(json: Uint8Array): boolean {
  if (json.length <= MODEST_BYTES) return false
  let values = 0
  let inString = false
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]
    if (inString) {
      if (byte === BACKSLASH) i++
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) values++
  }
  return values > MAX_VALUES
}
