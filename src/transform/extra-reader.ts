import { type ExtraField, getOrInsert, int64, parseTimestamp } from '../core/index.ts'
import type { ColumnValue } from './columns/value-columns.ts'
import { REDACTED } from './mask/mask.ts'
import { type Hidden, repeats } from './row-texts.ts'
import { BACKSLASH, memberAt, QUOTE, skipString } from './scan/json-steps.ts'
import { CREDENTIAL_FIELDS, integer, SOURCE_FIELDS, unknownNames } from './schema.ts'

type ExtraIssue = { readonly path: string[]; readonly message: string }

export type ExtraValues = {
  /** By field number; a field that is missing or null is null. */
  readonly values: readonly ColumnValue[]
  readonly issues: readonly ExtraIssue[]
  /** Names of fields, as they may be shown, that nobody knows. */
  readonly unknown: readonly string[]
}

/** An object on the way of paths. */
type Crossing = {
  readonly path: readonly string[]
  /** Names that paths go on with. */
  readonly names: Set<string>
  /** Whether a field takes it as a whole: then nothing in it is unknown. */
  readonly isTaken: boolean
}

export class ExtraReader {
  readonly #fields: readonly ExtraField[]
  readonly #crossings: readonly Crossing[]
  readonly #itemFields: ReadonlySet<string>

  constructor(fields: readonly ExtraField[]) {
    this.#fields = fields
    // The source has fields of its own that nobody knows.
    const crossings = new Map<string, Crossing>()
    const crossingAt = (path: readonly string[], names: Iterable<string>): Crossing => {
      const key = path.join('.')
      const isTaken = fields.some((field) => field.path.join('.') === key)
      return getOrInsert(crossings, key, () => ({ path, names: new Set(names), isTaken }))
    }
    crossingAt(['source'], SOURCE_FIELDS)
    for (const { path } of fields) {
      for (let depth = 1; depth < path.length; depth++)
        crossingAt(path.slice(0, depth), []).names.add(path[depth]!)
    }
    this.#crossings = [...crossings.values()]
    this.#itemFields = new Set([...CREDENTIAL_FIELDS, ...fields.map(({ path }) => path[0]!)])
  }

  /** @param item with all digits; its JSON begins at `start` @param hidden what values and names may not contain */
  read(item: unknown, bytes: Buffer, start: number, hidden: Hidden): ExtraValues {
    const issues: ExtraIssue[] = []
    const names: string[] = isObject(item) ? [...unknownNames(item, this.#itemFields)] : []
    for (const { path, names: known, isTaken } of this.#crossings) {
      const value = valueAt(item, path)
      if (isObject(value)) {
        if (!isTaken) names.push(...unknownNames(value, known, `${path.join('.')}.`))
      } else if (value != null && (path.length > 1 || path[0] !== 'source'))
        // Of the source itself the schema says it.
        issues.push({ path: [...path], message: IN_THE_WAY })
    }
    const values = this.#fields.map((field): ColumnValue => {
      const { type, path } = field
      const found = valueAt(item, path)
      if (found === undefined || found === null) return null
      const { read, expected, withheld } = TYPES[type]
      const value = type === 'json' ? jsonAt(bytes, start, path) : read(found)
      if (value !== undefined) return isHidden(field, found, value, hidden) ? withheld : value
      issues.push({ path: [...path], message: `Invalid input: expected ${expected}` })
      return null
    })
    return { values, issues, unknown: names.sort() }
  }
}

const IN_THE_WAY = 'Invalid input: expected object'

type ValueType = {
  /** What an issue says instead of what was found. */
  readonly expected: string
  /** @param found not null, parsed with all digits @returns undefined when it is of another type */
  readonly read: (found: unknown) => ColumnValue | undefined
  /** Stands for a value that contains what it may not: a column of numbers, times or booleans can hold no text. */
  readonly withheld: ColumnValue
}

const TYPES: Readonly<Record<ExtraField['type'], ValueType>> = {
  string: {
    expected: 'string',
    read: (found) => (typeof found === 'string' ? found : undefined),
    withheld: REDACTED,
  },
  int64: {
    expected: 'a 64-bit integer',
    read: (found) => {
      const { data } = integer.safeParse(found)
      return data === undefined ? undefined : int64(data)
    },
    withheld: null,
  },
  boolean: {
    expected: 'boolean',
    read: (found) => (typeof found === 'boolean' ? found : undefined),
    withheld: null,
  },
  timestamp: {
    expected: 'an ISO 8601 timestamp',
    read: (found) => (typeof found === 'string' ? (parseTimestamp(found) ?? undefined) : undefined),
    withheld: null,
  },
  strings: {
    expected: 'an array of strings',
    read: (found) =>
      Array.isArray(found) && found.every((item) => typeof item === 'string') ? found : undefined,
    withheld: [REDACTED],
  },
  // Read from the bytes: any value is JSON.
  json: { expected: 'JSON', read: () => undefined, withheld: JSON.stringify(REDACTED) },
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function valueAt(item: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined),
    item,
  )
}

/** As the service wrote it: parsed, a number would lose digits, and an object the order of some members. */
function jsonAt(bytes: Buffer, start: number, path: readonly string[]): string {
  let range: readonly [start: number, end: number] = [start, bytes.length]
  for (const name of path) range = memberAt(bytes, range[0], name)!
  return compactJson(bytes, ...range)
}

/** Without white space. Numbers keep every digit, members their order. Strings are as JSON.stringify writes them. */
function compactJson(bytes: Buffer, start: number, end: number): string {
  const parts: string[] = []
  let from = start
  const take = (to: number): void => {
    if (to > from) parts.push(bytes.toString('utf8', from, to))
  }
  for (let at = start; at < end; ) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      const next = skipString(bytes, at)
      if (bytes.subarray(at, next).includes(BACKSLASH)) {
        take(at)
        const text: string = JSON.parse(bytes.toString('utf8', at, next))
        parts.push(JSON.stringify(text.toWellFormed()))
        from = next
      }
      at = next
    } else if (byte <= 0x20) {
      take(at)
      from = ++at
    } else at++
  }
  take(end)
  return parts.join('')
}

/** Whether a value contains what it may not. What the service documents of a source is the same for many rows. */
function isHidden(
  { type, meaning, path }: ExtraField,
  found: unknown,
  value: ColumnValue,
  hidden: Hidden,
): boolean {
  if (hidden.length === 0 || (meaning !== null && path[0] === 'source')) return false
  const texts =
    type === 'json' ? textsOf(value as string) : type === 'strings' ? (found as string[]) : [String(found)]
  return texts.some((text) => repeats(text, hidden))
}

/** JSON as it is written, and its strings and names: parsed, it would lack all but the last of members of one name. */
function textsOf(json: string): readonly string[] {
  return [json, ...Array.from(json.matchAll(/"(?:[^"\\]|\\.)*"/g), ([token]) => JSON.parse(token) as string)]
}
