import { type ExtraField, getOrInsert } from '../../core/index.ts'
import type { ColumnValue } from '../columns/value-columns.ts'
import { REDACTED } from '../mask/mask.ts'
import { type Hidden, repeats } from '../row-texts.ts'
import { memberAt } from '../scan/json-steps.ts'
import { CREDENTIAL_FIELDS, SOURCE_FIELDS, unknownNames } from '../schema.ts'
import { compactJson, EXPECTED, readExtra } from './read-extra.ts'

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
      const value = type === 'json' ? jsonAt(bytes, start, path) : readExtra(type, found)
      if (value !== undefined) return isHidden(field, found, value, hidden) ? withheld(type) : value
      issues.push({ path: [...path], message: EXPECTED[type] })
      return null
    })
    return { values, issues, unknown: names.sort() }
  }
}

const IN_THE_WAY = 'Invalid input: expected object'

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

/** A column of numbers, times or booleans can hold no text. */
function withheld(type: ExtraField['type']): ColumnValue {
  switch (type) {
    case 'string':
      return REDACTED
    case 'strings':
      return [REDACTED]
    case 'json':
      return JSON.stringify(REDACTED)
    default:
      return null
  }
}
