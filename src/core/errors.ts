import { unlessSecret } from './secrets/known-secrets.ts'

/**
 * What went wrong. The kind decides the recovery and the exit code:
 * - `config`: the user's input is wrong; nothing was changed (exit 2)
 * - `credentials`: the service rejects the token or key, or a database rejects the user or the password (exit 3)
 * - `quota`: the request budget or the service's quota is used up; resumable (exit 4)
 * - `locked`: another run holds the pipeline, or another process holds the DuckDB file to load into (exit 5)
 * - `interrupted`: a signal stopped the run; resumable (exit 130/143)
 * - `transient`: network trouble, timeouts, 408, 429, 5xx, broken responses; retried, then fails the partition
 * - `shape`: a complete response is none to its request; requested once more, then it is `data`
 * - `refused`: the service responds 4xx to this request; fails the partition at once
 * - `cursor`: the service rejects a cursor, or repeats one
 * - `data`: the response breaks the contract (ignored filter, invalid item under `on_invalid: fail`)
 * - `storage`: the disk fails (full, read-only, removed); stops the run, resumable
 * - `target`: the database to load into cannot be reached, or rejects the load; nothing was loaded partially
 * - `damaged`: files on disk are not what the checkpoint says
 */
export type ErrorKind = (typeof ERROR_KINDS)[number]

export const ERROR_KINDS = [
  'config',
  'credentials',
  'quota',
  'locked',
  'interrupted',
  'transient',
  'shape',
  'refused',
  'cursor',
  'data',
  'storage',
  'target',
  'damaged',
] as const

/** Holds no values of records. A part that repeats a known secret is left out: errors go to logs and summaries. */
export class ExportError extends Error {
  override readonly name = 'ExportError'
  readonly kind: ErrorKind
  readonly what: string
  /** Empty: the message names no location. */
  readonly where: string
  readonly next: string
  /** `quota`: when more of it is available (epoch ms); null: not known. */
  readonly untilMs: number | null
  readonly #said: string

  /** @param details.said what the server said of it; default: as the cause */
  constructor(
    details: PlainError & ErrorOptions & { readonly untilMs?: number | null; readonly said?: string },
  ) {
    const [what, where, next] = [details.what, details.where, details.next].map((part) =>
      unlessSecret(part, 'long'),
    )
    super(`${what}${where === '' ? '' : ` (${where})`}. ${next}`, details)
    this.kind = details.kind
    this.what = what!
    this.where = where!
    this.next = next!
    this.untilMs = details.untilMs ?? null
    const { cause } = details
    this.#said = details.said ?? (cause instanceof ExportError ? cause.#said : '')
  }

  /** The message, and what the server said: for stderr alone, since that may quote a row. What is kept has the message. */
  get onTerminal(): string {
    return this.#said === '' ? this.message : `${this.message} The response says: ${this.#said}`
  }
}

/** An error as plain data. Threads and machines exchange this form, because an object loses its class on the way. */
export type PlainError = Pick<ExportError, 'kind' | 'what' | 'where' | 'next'>

export function plainError({ kind, what, where, next }: PlainError): PlainError {
  return { kind, what, where, next }
}

export function isExportError(error: unknown, ...kinds: ErrorKind[]): error is ExportError {
  return error instanceof ExportError && (kinds.length === 0 || kinds.includes(error.kind))
}

/** For `catch` of a promise: an {@link ExportError} of one of the kinds (without kinds, of any) gives null, other errors stay. */
export function nullIf(...kinds: ErrorKind[]): (error: unknown) => null {
  return (error) => {
    if (isExportError(error, ...kinds)) return null
    throw error
  }
}

/** The code of an error of the system, a server or a package, such as `ENOENT`; empty: it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(codeOf(error))
}

/** `1 row`, `24 rows`: for messages. */
export function numberOf(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`
}

/** @param where what needs it @throws ExportError `config` when it is not set, or empty */
export function requireSet(
  variable: string,
  value: string | null | undefined,
  where: string,
  next = `Set it, or ${variable}_FILE to a file that holds it.`,
): string {
  if (value) return value
  throw new ExportError({
    kind: 'config',
    what: `the environment variable ${variable} is not set, or empty`,
    where,
    next,
  })
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
export type LogFields = Readonly<Record<string, string | number | boolean | null>>

/** Writes a log line. Lines hold no secrets. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void
