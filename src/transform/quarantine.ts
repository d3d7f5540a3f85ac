import type * as z from 'zod'
import {
  type ExtraField,
  type Int64,
  type Int64Json,
  int64,
  numberOf,
  repeatsSecret,
  unlessSecret,
} from '../core/index.ts'

import type { RejectedItem } from '../rows/index.ts'
import { type Mask, type Masks, maskText, REDACTED } from './mask/mask.ts'
import { type Hidden, type RowTexts, repeats } from './row-texts.ts'
import {
  CREDENTIAL_FIELDS,
  fieldName,
  integer as int64Schema,
  SOURCE_FIELDS,
  timestamp,
  UNNAMED_FIELDS,
} from './schema.ts'

const MAX_ISSUES = 20
// Limits: UTF-16 units of a string, elements of a list, unknown fields of an object.
const MAX_TEXT_LENGTH = 10_240
const MAX_ELEMENTS = 100
const MAX_UNKNOWN_FIELDS = 50

/** What is shown of a value of a field. @param hidden what its texts may not contain */
type Rule = (value: unknown, hidden: Hidden) => unknown

type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>

/** Makes the quarantine entry of an item that violates the schema: the values that may be shown, and the issues. */
export type Quarantine = (item: unknown, issues: readonly Issue[], index: number) => RejectedItem

/** @param texts what other texts of the item may not contain */
export function credentialQuarantine(
  masks: Masks,
  extras: readonly ExtraField[],
  texts: RowTexts,
): Quarantine {
  const isNamed = extras.some(({ name }) => name === 'credential_hash')
  const shortened = (url: unknown): unknown => (typeof url === 'string' ? texts.url(url) : url)
  // These fields are not strings. A string in them has an unknown origin and may be the secret.
  const source = object(SOURCE_FIELDS, { is_alert_enabled: truth, breached_at: time, leaked_at: time })
  const show = object(CREDENTIAL_FIELDS, {
    identity_name: masked(masks.identity),
    hash: masked(masks.secret),
    // A dictionary attack on a digest without a key may reveal the secret.
    credential_hash: (value, hidden) =>
      isNamed && (value === null || typeof value === 'string') ? plain(value, hidden) : REDACTED,
    id: integer,
    imported_at: time,
    source,
    auth_domains: listed,
    urls: (value, hidden) =>
      listed(Array.isArray(value) ? value.slice(0, MAX_ELEMENTS).map(shortened) : value, hidden),
  })
  return quarantine((item) => {
    if (typeof item !== 'object' || item === null) return show(item, NOTHING_HIDDEN)
    const { hash, identity_name: identity } = item as { hash?: unknown; identity_name?: unknown }
    const secrets = scalars(hash)
    const bare =
      typeof identity === 'string'
        ? secrets.reduce((text, secret) => texts.identity(text, secret), identity)
        : identity
    const hidden = texts.hidden(secrets, typeof bare === 'string' ? bare : null)
    return show('identity_name' in item ? { ...item, identity_name: bare } : item, hidden)
  })
}

/** The first strings and numbers in a value, which may be nested deeper than calls can be. */
function scalars(value: unknown): readonly string[] {
  const found: string[] = []
  const open = [value]
  while (open.length > 0 && found.length < MAX_SECRETS) {
    const next = open.pop()
    if (typeof next === 'object' && next !== null) open.push(...Object.values(next).slice(0, MAX_SECRETS))
    else if (next !== null && typeof next !== 'boolean') found.push(String(next))
  }
  return found
}

const MAX_SECRETS = 100

/** @param fields the known fields of an item that holds no secret */
export function plainQuarantine(fields: ReadonlySet<string>): Quarantine {
  const show = object(fields, {})
  return quarantine((item) => show(item, NOTHING_HIDDEN))
}

const NOTHING_HIDDEN: Hidden = []

function quarantine(show: (item: unknown) => unknown): Quarantine {
  return (item, issues, index) => ({
    at: timeOf(item),
    index,
    id: idOf(item),
    issues: issues.slice(0, MAX_ISSUES).map(({ path, message }) => ({
      path: path.map(String).join('.'),
      message,
      found: kindOf(valueAt(item, path)),
    })),
    item: item === null ? REDACTED : show(item),
  })
}

function valueAt(item: unknown, path: Issue['path']): unknown {
  return path.reduce<unknown>(
    (value, name) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? (value as Record<PropertyKey, unknown>)[name]
        : undefined,
    item,
  )
}

/** What a value is, for people who look for the cause: its kind and length say nothing of a secret's contents. */
function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (typeof value === 'string') return `string of ${numberOf(value.length, 'character')}`
  if (Array.isArray(value)) return `list of ${numberOf(value.length, 'element')}`
  if (typeof value === 'object') return `object of ${numberOf(Object.keys(value).length, 'field')}`
  return typeof value === 'bigint' ? 'number' : typeof value
}

export function rejectedTime(item: unknown): Int64 | null {
  if (typeof item !== 'object' || item === null || !('imported_at' in item)) return null
  return timestamp.safeParse(item.imported_at).data ?? null
}

function timeOf(item: unknown): number | null {
  const at = rejectedTime(item)
  return at === null ? null : Number(at)
}

/** The id of an item that violates the schema, if it has a valid one. Repetitions of the item are detected by it. */
export function rejectedId(item: unknown): Int64 | null {
  const id = int64Schema.safeParse(rawId(item)).data
  return id === undefined ? null : int64(id)
}

function idOf(item: unknown): Int64Json | null {
  const id = rawId(item)
  return typeof id === 'bigint' ? String(id) : id
}

function rawId(item: unknown): number | bigint | null {
  const id = typeof item === 'object' && item !== null && 'id' in item ? item.id : null
  return typeof id === 'bigint' || (typeof id === 'number' && Number.isSafeInteger(id)) ? id : null
}

/** Shows known fields by their rules, and only the names of all others. */
function object(known: ReadonlySet<string>, rules: Readonly<Record<string, Rule>>): Rule {
  return (value, hidden) => {
    if (value === null) return null
    if (typeof value !== 'object' || Array.isArray(value)) return REDACTED
    const fields = Object.entries(value)
    const unknown = fields.filter(([name]) => !known.has(name)).slice(0, MAX_UNKNOWN_FIELDS)
    return Object.fromEntries([
      ...unknown.map(([name]) => [shownName(name, hidden), REDACTED]),
      ...fields
        .filter(([name]) => known.has(name))
        .map(([name, field]) => [name, (rules[name] ?? plain)(field, hidden)]),
    ])
  }
}

function masked(mask: Mask | null): Rule {
  return (value) => {
    if (value === null) return null
    return typeof value === 'string' ? cut(maskText(mask, value)) : REDACTED
  }
}

/** A value that is not secret. The field cannot be an object, so the contents of an object are unknown and redacted. */
function plain(value: unknown, hidden: Hidden): unknown {
  if (Array.isArray(value)) return value.slice(0, MAX_ELEMENTS).map((each) => scalar(each, hidden))
  return scalar(value, hidden)
}

function integer(value: unknown): unknown {
  return value === null || typeof value === 'number' || typeof value === 'bigint'
    ? scalar(value, NOTHING_HIDDEN)
    : REDACTED
}

function truth(value: unknown): unknown {
  return value === null || typeof value === 'boolean' ? value : REDACTED
}

function time(value: unknown): unknown {
  if (value === null) return null
  return timestamp.safeParse(value).success ? cut(value as string) : REDACTED
}

function listed(value: unknown, hidden: Hidden): unknown {
  return value === null || Array.isArray(value) ? plain(value, hidden) : REDACTED
}

function scalar(value: unknown, hidden: Hidden): unknown {
  if (value === null || typeof value === 'boolean') return value
  // Beyond 2^53, a number may differ from that in the response.
  if (typeof value === 'number' && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) return null
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'bigint') return REDACTED
  const text = cut(String(value))
  if (repeats(text, hidden)) return REDACTED
  return typeof value === 'number' ? value : text
}

function cut(text: string): string {
  return unlessSecret(text.slice(0, MAX_TEXT_LENGTH).toWellFormed(), 'long')
}

function shownName(name: string, hidden: Hidden): string {
  return repeats(name, hidden) || repeatsSecret(name) ? UNNAMED_FIELDS : fieldName('', name)
}
