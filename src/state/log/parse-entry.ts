import type * as z from 'zod'
import { ExportError } from '../../core/index.ts'
import { ENTRY_SCHEMAS, type JournalEntry } from '../journal-entry.ts'

/** @returns null if it does not match a schema (a newer version may have more kinds) */
export function parseEntry(entry: unknown): JournalEntry | null {
  const result = schemaOf(entry)?.safeParse(entry)
  return result?.success === true ? result.data : null
}

/** The first field for which {@link parseEntry} would reject the entry; null: it accepts it. */
export function faultyField(entry: JournalEntry): string | null {
  const result = schemaOf(entry)?.safeParse(entry)
  if (result === undefined) return 'kind'
  return result.success ? null : (result.error.issues[0]?.path.join('.') ?? '')
}

function schemaOf(entry: unknown): z.ZodType<JournalEntry> | null {
  const { kind } = (entry ?? {}) as { readonly kind?: unknown }
  if (typeof kind !== 'string' || !Object.hasOwn(ENTRY_SCHEMAS, kind)) return null
  return ENTRY_SCHEMAS[kind as keyof typeof ENTRY_SCHEMAS]
}

/** Checks that readers accept an entry. One invalid entry would make the whole data set unusable. */
export function requireReadable(entry: JournalEntry): void {
  // Every page has these, and with counts alone they match their schemas: to ask zod takes a twentieth of a small page.
  if ((entry.kind === 'page' || entry.kind === 'measured') && hasCountsAlone(entry)) return
  const field = faultyField(entry)
  if (field === null) return
  throw new ExportError({
    kind: 'data',
    what: `The journal entry "${entry.kind}" could not be read again: ${field} is out of range`,
    where: '_state/log',
    next: 'The entry was not written, and committed data is unchanged. Report this error with the name of the field.',
  })
}

function hasCountsAlone(value: unknown): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0
  return typeof value !== 'object' || value === null || Object.values(value).every(hasCountsAlone)
}
