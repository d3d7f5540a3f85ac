import { unlessSecret } from './secrets/known-secrets.ts'

/**
 * What went wrong, as far as recovery and the exit code care:
 * - `config`: the user's input is wrong; nothing was changed (exit 2)
 * - `credentials`: the service refuses the token or key, or a database the user or the password (exit 3)
 * - `quota`: the request budget or the service's quota is used up; resumable (exit 4)
 * - `locked`: another run holds the pipeline, or another process the DuckDB file that rows are loaded into (exit 5)
 * - `interrupted`: a signal stopped the run; resumable (exit 130/143)
 * - `transient`: network trouble, timeouts, 408, 429, 5xx, broken responses; retried, then fails the partition
 * - `refused`: the service responds 4xx to this request; fails the partition at once
 * - `cursor`: the service refuses a cursor, or repeats one
 * - `data`: the response breaks the contract (ignored filter, invalid item under `on_invalid: fail`)
 * - `storage`: the disk fails (full, read-only, removed); stops the run, resumable
 * - `target`: the database that rows are loaded into can't be reached or refuses; nothing is half loaded
 * - `damaged`: files on disk are not what the checkpoint says
 */
export type ErrorKind =
  | 'config'
  | 'credentials'
  | 'quota'
  | 'locked'
  | 'interrupted'
  | 'transient'
  | 'refused'
  | 'cursor'
  | 'data'
  | 'storage'
  | 'target'
  | 'damaged'

/**
 * An error that says what happened, where, and what to do next. Never carries values of records; and of its parts none
 * that repeats a secret, wherever the words in it came from: errors go to logs, the checkpoint and summaries.
 */
export class ExportError extends Error {
  override readonly name = 'ExportError'
  readonly what: string
  readonly where: string
  readonly next: string
  /** `quota`: when there is more of it again (epoch ms); null: not known. */
  readonly untilMs: number | null

  constructor(
    readonly kind: ErrorKind,
    what: string,
    where: string,
    next: string,
    options?: ErrorOptions & { readonly untilMs?: number | null },
  ) {
    const [saidWhat, saidWhere, saidNext] = [what, where, next].map((part) => unlessSecret(part, 'long'))
    const at = saidWhere === '' ? '' : ` (${saidWhere})`
    super(`${saidWhat}${at}. ${saidNext}`, options)
    this.what = saidWhat!
    this.where = saidWhere!
    this.next = saidNext!
    this.untilMs = options?.untilMs ?? null
  }
}

/** An error as it goes between threads and machines, where it would lose its class. */
export type PlainError = Pick<ExportError, 'kind' | 'what' | 'where' | 'next'>

export function plainError({ kind, what, where, next }: ExportError): PlainError {
  return { kind, what, where, next }
}

export function fromPlainError({ kind, what, where, next }: PlainError): ExportError {
  return new ExportError(kind, what, where, next)
}

/** Narrows an unknown thrown value to an {@link ExportError} of one of the kinds given (any, when none is). */
export function isExportError(error: unknown, ...kinds: ErrorKind[]): error is ExportError {
  return error instanceof ExportError && (kinds.length === 0 || kinds.includes(error.kind))
}

/** `1 row`, `24 rows`: for messages. */
export function numberOf(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`
}

/**
 * The value of an environment variable that has to be set.
 * @param where what needs it: the pipeline file, for example
 * @throws ExportError `config` when there is none, or it is empty
 */
export function requireSet(
  variable: string,
  value: string | null | undefined,
  where: string,
  next = `Set it, or ${variable}_FILE to a file that holds it.`,
): string {
  if (value) return value
  throw new ExportError('config', `the environment variable ${variable} is not set`, where, next)
}

/**
 * Secrets are written unmasked only if this run was allowed to.
 * @param where the pipeline file
 * @throws ExportError `config`
 */
export function requireConsent(policy: string, allowPlaintext: boolean | undefined, where: string): void {
  if (policy !== 'plaintext' || allowPlaintext === true) return
  const what =
    'plaintext needs consent at each run, and this run was not given leave to write secrets unmasked'
  const next = 'Add --allow-plaintext, or choose redact, drop, partial or hmac.'
  throw new ExportError('config', what, where, next)
}
