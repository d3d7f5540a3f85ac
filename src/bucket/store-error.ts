import { type ErrorKind, ExportError } from '../core/index.ts'

export type Cause = readonly [kind: ErrorKind, what: string, next: string]

export const AGAIN = 'run again; the run resumes after its last committed page.'

export const CLOCK: Cause = [
  'storage',
  "This machine's clock and the store's are too far apart",
  'Set the clock, then run again.',
]

export type StoreErrors = {
  /** By error code of the store and its SDK. */
  readonly causes: Readonly<Record<string, Cause>>
  /** By HTTP status, for codes that are not known. */
  readonly statuses: Readonly<Record<number, Cause>>
  /** The section of the pipeline file. */
  readonly section: string
  /** What leads to the store. */
  readonly address: string
}

/** The cause of an error by its code and HTTP status, of which there is one at least. */
export function causeOf(
  { causes, statuses, section, address }: StoreErrors,
  status: number | null,
  code: string | null,
): Cause {
  const known = causes[code ?? ''] ?? statuses[status ?? 0]
  if (known !== undefined) return known
  if (status === null) {
    const what = `The store cannot be reached (${TIMED_OUT.test(code ?? '') ? 'no response in time' : code})`
    return ['storage', what, `Check ${address}, the network and the proxy, then ${AGAIN}`]
  }
  const said = `${status}${code === null || NO_CODE.test(code) ? '' : ` ${code}`}`
  if (status === 429 || status === 503)
    return ['storage', `The store is busy (${said})`, `Wait some minutes, then ${AGAIN}`]
  if (status >= 500) return ['storage', `The store fails (${said})`, `Wait until it works, then ${AGAIN}`]
  return ['storage', `The store refuses (${said})`, `Check load.path and ${section}, then run again.`]
}

/** The SDKs abort what takes longer than their limits. Nothing else is aborted. */
const TIMED_OUT = /^(?:Abort|Timeout)Error$/
const NO_CODE = /^(?:UnknownError|Unknown|\d+)$/

// Six requests over some seconds outlast a store that is busy or moves.
export const STORE_ATTEMPTS = 6

/** @param name of an optional package @throws ExportError `config` when it is not installed */
export async function loadSdk<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    throw new ExportError({
      kind: 'config',
      what: `Object storage needs the package ${name}, which is not installed`,
      where: 'load.path',
      next: `Install spillway with its optional dependencies, or run \`npm install ${name}\` beside it.`,
      cause,
    })
  }
}

export function plainHttp(where: string, next: string): ExportError {
  return new ExportError({
    kind: 'config',
    what: 'The connection to object storage on another machine is plain http, so rows would be sent unencrypted',
    where,
    next,
  })
}
