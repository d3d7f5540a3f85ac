/** What may be told of an error of DuckDB: its messages quote values where a cast or a function fails. */
export type DuckdbError = {
  /** `Conversion`, `Binder`, `IO`, …; null: not told. */
  readonly kind: string | null
  /** Offset in the statement; null: not told. */
  readonly position: number | null
  /** Names of columns or tables that the statement may have meant. */
  readonly similar: readonly string[]
}

/** Has DuckDB write its errors as JSON, with their kind and position, instead of as text. */
export const ERRORS_WITH_CODES = { errors_as_json: 'true' } as const

/** Subtypes whose candidates are names of columns or tables. */
const NAMES_SOMETHING: ReadonlySet<unknown> = new Set(['COLUMN_NOT_FOUND', 'MISSING_ENTRY'])

/** Reads an error of an instance that was opened with {@link ERRORS_WITH_CODES}. */
export function duckdbError(error: unknown): DuckdbError {
  const message = error instanceof Error ? error.message : ''
  const told = fieldsOf(message)
  // Errors of opening a file, and some of parsing, have their kind in front in either case.
  const kind = told.exception_type ?? /^([A-Z]\w*(?: [A-Z]\w*)?) Error: /.exec(message)?.[1]
  const { position, candidates } = told
  return {
    kind: typeof kind === 'string' && kind !== '' ? kind : null,
    position: typeof position === 'string' && /^\d+$/.test(position) ? Number(position) : null,
    similar:
      typeof candidates === 'string' && NAMES_SOMETHING.has(told.error_subtype)
        ? candidates.split(',').filter(Boolean)
        : [],
  }
}

function fieldsOf(message: string): Readonly<Record<string, unknown>> {
  const from = message.indexOf('{')
  if (from < 0) return {}
  try {
    const fields: unknown = JSON.parse(message.slice(from))
    return typeof fields === 'object' && fields !== null ? { ...fields } : {}
  } catch {
    return {}
  }
}
