import * as z from 'zod'
import { hasTooManyValues, parseTimestamp, repeatsSecret } from '../core/index.ts'

const optionalString = z.string().nullish()
const optionalStrings = z.array(z.string()).nullish()

const NO_INT64 = 'Invalid input: expected a 64-bit integer'

/** An integer of 64 bits. Responses are parsed so that large ones are bigints. */
export const integer = z.union([z.int(), z.int64(NO_INT64)], NO_INT64)
const optionalInteger = integer.nullish()

/** Microseconds since the epoch. The issue names what is expected, never the value. */
export const timestamp = z.string().transform((input, context) => {
  const micros = parseTimestamp(input)
  if (micros !== null) return micros
  context.issues.push({ code: 'custom', message: 'Invalid input: expected an ISO 8601 timestamp', input })
  return z.NEVER
})
const optionalTimestamp = timestamp.nullish()

/** Source: service spec 2.3; nullability from the public documentation. Nullable fields may be missing. */
export const sourceSchema = z.object({
  id: z.string(),
  name: optionalString,
  description_en: optionalString,
  description_fr: optionalString,
  is_alert_enabled: z.boolean().nullish(),
  breached_at: optionalTimestamp,
  leaked_at: optionalTimestamp,
})

/** Source: service spec 2.2; `auth_domains`, `urls` and nullability from the public documentation. */
export const credentialSchema = z.object({
  id: integer,
  domain: optionalString,
  identity_name: z.string(),
  hash: optionalString,
  hash_type: optionalString,
  imported_at: timestamp,
  known_password_id: z.union([z.string(), integer]).nullish(),
  source_id: z.string(),
  source: sourceSchema.nullish(),
  auth_domains: optionalStrings,
  urls: optionalStrings,
})

/** A threat-flow report. Source: service spec 2.1, which does not define nullability; null is accepted. */
export const reportSchema = z.object({
  id: integer,
  format_type: z.string(),
  title: z.string(),
  subtitle: optionalString,
  summary: optionalString,
  content: optionalString,
  tags: optionalStrings,
  highlights: optionalStrings,
  related_activity_uids: optionalStrings,
  prompt_preset_uid: optionalString,
  created_at: optionalTimestamp,
  published_at: optionalTimestamp,
  updated_at: optionalTimestamp,
  reading_time: optionalInteger,
  tenant_id: optionalInteger,
  organization_id: optionalInteger,
})

export type Source = z.infer<typeof sourceSchema>
export type Credential = z.infer<typeof credentialSchema>

/** Known fields. Those without a rule in the schema are neither checked nor exported. */
export const CREDENTIAL_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(credentialSchema.shape),
  'credential_hash',
  'event_uid',
])
export const SOURCE_FIELDS: ReadonlySet<string> = new Set([
  ...Object.keys(sourceSchema.shape),
  'pii_tags',
  'url',
])
export const REPORT_FIELDS: ReadonlySet<string> = new Set(Object.keys(reportSchema.shape))

/** Names per page. Further names are counted together. */
const MAX_NAMES = 50
/** Under which fields are counted whose names are not shown. */
export const UNNAMED_FIELDS = '…'

export class UnknownFields {
  readonly #counts = new Map<string, number>()

  /** @param isHidden whether a name that is new repeats what the row hides */
  count(name: string, isHidden: (name: string) => boolean = () => false): void {
    const isNew = !this.#counts.has(name)
    const key = isNew && (this.#counts.size >= MAX_NAMES || isHidden(name)) ? UNNAMED_FIELDS : name
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
  }

  countAll(names: readonly string[], isHidden?: (name: string) => boolean): void {
    for (const name of names) this.count(name, isHidden)
  }

  /** Without names that repeat a known secret. */
  record(): Readonly<Record<string, number>> {
    const shown = new Map<string, number>()
    for (const [name, times] of this.#counts) {
      const key = repeatsSecret(name) ? UNNAMED_FIELDS : name
      shown.set(key, (shown.get(key) ?? 0) + times)
    }
    return Object.fromEntries(shown)
  }
}

/** A field's name, if it looks like one: a service may put any text there. */
export function fieldName(prefix: string, name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? prefix + name : UNNAMED_FIELDS
}

export function unknownNames(value: object, known: ReadonlySet<string>, prefix = ''): readonly string[] {
  const names: string[] = []
  for (const name in value) if (!known.has(name)) names.push(fieldName(prefix, name))
  return names
}

/** A source that is parsed once for all items that have it. */
export type KnownSource = {
  readonly id: string
  readonly source: Source
  /** Names of its fields that nobody knows. */
  readonly unknown: readonly string[]
  /** Entry of (`source.id`, source) in the source table of page number `page`. */
  entry: number
  page: number
}

/** Parses and validates a source that has not come before; null when it breaks the schema. */
export function readSource(bytes: Buffer, start: number, end: number): KnownSource | null {
  // An item with it is parsed as a whole.
  if (hasTooManyValues(bytes.subarray(start, end))) return null
  const value: unknown = JSON.parse(bytes.toString('utf8', start, end))
  const { data: source } = sourceSchema.safeParse(value)
  if (source === undefined) return null
  const unknown = unknownNames(value as object, SOURCE_FIELDS, 'source.')
  return { id: source.id, source, unknown, entry: 0, page: -1 }
}
