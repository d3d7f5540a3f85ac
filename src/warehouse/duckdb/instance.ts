import { access, open, stat } from 'node:fs/promises'
import { constants } from 'node:os'
import { basename, dirname } from 'node:path'
import type { DuckDBInstance } from '@duckdb/node-api'
import { type Clock, codeOf, ExportError, isExportError } from '../../core/index.ts'
import { literal } from '../table/table.ts'

const DUCKDB_PACKAGE = '@duckdb/node-api'

export function lacksDuckdb(error: unknown): boolean {
  return isExportError(error, 'config') && error.where === DUCKDB_PACKAGE
}

/** Loaded only where it is needed: it is optional, and has 70 MB. @throws ExportError `config` when it does not load */
export async function loadDuckdb(): Promise<typeof import('@duckdb/node-api')> {
  try {
    return await import('@duckdb/node-api')
  } catch (cause) {
    const code = codeOf(cause)
    // The package, or its part for this system, which it has as optional dependencies.
    const isAbsent = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    throw new ExportError({
      kind: 'config',
      what: isAbsent
        ? 'This needs DuckDB, which is not installed, or not for this system'
        : `DuckDB is installed and cannot be loaded${code === '' ? '' : ` (${code})`}: a library that it needs is missing, or it is for another system`,
      where: DUCKDB_PACKAGE,
      next: isAbsent
        ? `Install spillway without --omit=optional, or add both packages: npm install ${BOTH}`
        : `Install it on this system, not a copy from another one (Alpine has musl, others glibc): npm install ${BOTH}`,
      cause,
    })
  }
}

const DUCKDB_VERSION = '1.5.5-r.5'
const BOTH = `${DUCKDB_PACKAGE}@${DUCKDB_VERSION} @duckdb/node-bindings-${process.platform}-${process.arch}@${DUCKDB_VERSION}`

/** Errors as JSON, with kind and position. No copies of what was read: they take 90 kB a small shard, read once. */
const OPTIONS = { errors_as_json: 'true', enable_external_file_cache: 'false' }

/** @param path a file, or `:memory:` */
export async function openInstance(
  path: string,
  options: Readonly<Record<string, string>> = {},
): Promise<DuckDBInstance> {
  const { DuckDBInstance } = await loadDuckdb()
  return DuckDBInstance.create(path, { ...OPTIONS, ...options })
}

/** Why a load waits for its target. */
export type TargetWait = {
  /** The process that has it open; null: not known. */
  readonly holder: string | null
  /** The longest wait; null: there is none. */
  readonly limitMs: number | null
}

export type OpenFileOptions = {
  readonly clock: Clock
  readonly stop: AbortSignal
  /** Called once when another process has the file open, with what is known of that process. */
  readonly onWait: (wait: TargetWait) => void
}

const RETRY_MS = 500
/** Only one process can open the file. */
const LIMIT_MS = 30_000

/** @throws ExportError `locked`: another process has it open for half a minute; `target`; `config`: no DuckDB file */
export async function openDuckdbFile(
  file: string,
  { clock, stop, onWait }: OpenFileOptions,
): Promise<DuckDBInstance> {
  await guarded(file, async () => {
    await access(dirname(file))
    await requireDuckdbFile(file)
  })
  const startedMs = clock.monotonicMs()
  for (let waits = 0; ; waits++) {
    try {
      return await openInstance(file)
    } catch (error) {
      if (!(await isLocked(file))) throw refusal(file, error)
      const holder = holderOf(error)
      if (waits === 0) onWait({ holder, limitMs: LIMIT_MS })
      if (clock.monotonicMs() - startedMs >= LIMIT_MS) throw held(file, holder, error)
      await clock.sleep(RETRY_MS, stop)
    }
  }
}

const MAGIC = 'DUCK'
const MAGIC_AT = 8

/** DuckDB opens CSV, JSON or Parquet as a view in memory, where rows would vanish. @throws ExportError `config` */
export async function requireDuckdbFile(file: string): Promise<void> {
  if ((await stat(file).catch(() => null))?.isFile() !== true) return
  const handle = await open(file, 'r')
  try {
    const { buffer } = await handle.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, MAGIC_AT)
    if (buffer.toString('latin1') === MAGIC) return
  } finally {
    await handle.close()
  }
  throw new ExportError({
    kind: 'config',
    what: 'The file is there, and it is not a DuckDB file',
    where: file,
    next: 'Name a DuckDB file, or one that is not there yet, which is then created; nothing was changed.',
  })
}

/** Attaches the file to an empty database: errors of that have a code, and the error of opening a file has none. */
async function isLocked(file: string): Promise<boolean> {
  const instance = await openInstance(':memory:')
  const connection = await instance.connect()
  try {
    await connection.run(`ATTACH ${literal(file)} AS attached`)
    return true
  } catch (error) {
    return duckdbError(error).errno === constants.errno.EAGAIN
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** What the message of a locked file says of its holder: `held in /usr/bin/python3.11 (PID 4711)`. */
function holderOf(error: unknown): string | null {
  const [, program = '', pid] = /held in (.*?) ?\(PID (\d+)\)/.exec(String(error)) ?? []
  if (pid === undefined) return null
  return `process ${pid}${program === '' ? '' : ` (${basename(program)})`}`
}

function held(file: string, holder: string | null, cause: unknown): ExportError {
  return new ExportError({
    kind: 'locked',
    what: `The DuckDB file is open in ${holder ?? 'another process'}, and was for half a minute`,
    where: file,
    next: 'Close it there (a notebook, a shell, another load), then load again; nothing was loaded partially.',
    cause,
  })
}

/** Runs a function that queries DuckDB. @throws ExportError that quotes no row */
export async function guarded<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof ExportError ? error : refusal(file, error)
  }
}

/** Without a cause: DuckDB's messages quote values where a cast fails. */
function refusal(file: string, error: unknown): ExportError {
  const code = codeOf(error)
  const { kind } = duckdbError(error)
  // A file of another format has the kind IO, like a full disk.
  const isFile = code !== '' || (kind !== null && IS_ABOUT_THE_FILE.has(kind))
  const shown = code || (kind === null ? 'an error' : `${kind} Error`)
  return new ExportError({
    kind: 'target',
    what: isFile ? `DuckDB cannot use the file (${shown})` : `DuckDB refuses (${shown})`,
    where: file,
    next: isFile
      ? 'See that it is a DuckDB file, that it can be written, and that its disk has room.'
      : 'Nothing was loaded partially; run `verify` to see that the shards are whole, then load again.',
  })
}

const IS_ABOUT_THE_FILE: ReadonlySet<string> = new Set(['IO', 'Serialization', 'FATAL'])

/** What may be shown of an error of DuckDB: its messages quote values where a cast or a function fails. */
type DuckdbError = {
  /** `Conversion`, `Binder`, `IO`, …; null: not known. */
  readonly kind: string | null
  /** Of the operating system; null: not known. */
  readonly errno: number | null
  /** Offset in the statement; null: not known. */
  readonly position: number | null
  /** Names of columns or tables that the statement may have meant. */
  readonly similar: readonly string[]
}

/** Subtypes whose candidates are names of columns or tables. */
const NAMES_SOMETHING: ReadonlySet<unknown> = new Set(['COLUMN_NOT_FOUND', 'MISSING_ENTRY'])

/** Reads an error of an instance that {@link openInstance} has opened. */
export function duckdbError(error: unknown): DuckdbError {
  const message = error instanceof Error ? error.message : ''
  const fields = fieldsOf(message)
  // Errors of opening a file, and some of parsing, have their kind in front in either case.
  const kind = fields.exception_type ?? /^([A-Z]\w*(?: [A-Z]\w*)?) Error: /.exec(message)?.[1]
  const { position, candidates } = fields
  const number = (value: unknown): number | null =>
    typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : null
  return {
    kind: typeof kind === 'string' && kind !== '' ? kind : null,
    errno: number(fields.errno),
    position: number(position),
    similar:
      typeof candidates === 'string' && NAMES_SOMETHING.has(fields.error_subtype)
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
