import {
  ExportError,
  formatInstant,
  formatTimestamp,
  type Int64,
  int64,
  locationOf,
  type Micros,
  type Pipeline,
  rulesOf,
} from '../../core/index.ts'
import { type ColumnType, columnsOf } from '../../rows/index.ts'
import { checkMaskKey } from '../../state/index.ts'
import { normalIdentity } from '../../transform/index.ts'
import { findRows, LOOKUP, type QueryRow } from '../../warehouse/index.ts'
import { openDataSet, requireManifest } from '../open-data-set.ts'
import { requireShards } from '../sign.ts'
import type { Directory, DirectoryAddress } from './directory.ts'
import { shardGroups } from './shard-groups.ts'

type MatchOptions = {
  /** Only rows that were imported then or later; null: all. */
  readonly since: Micros | null
  /** Whether `a+shop@b` is also `a@b`. */
  readonly plusTags: boolean
  /** The key under which the directory was digested; null: it was not, or by others. */
  readonly maskKey: Uint8Array | null
  readonly stop: AbortSignal
}

/** A credential of a person of the directory. */
export type Match = {
  /** Its index in the directory. */
  readonly person: number
  /** Key and address as in the directory, then columns of the row. */
  readonly cells: readonly (string | number | boolean | null)[]
}

export type Matches = {
  readonly columns: readonly string[]
  readonly matches: AsyncIterable<readonly Match[]>
}

/** The columns of a result that are those of rows. */
const ROW_COLUMNS = [
  ...['id', 'domain', 'source_id', 'source_name', 'imported_at', 'hash_type', 'hash'],
  ...['secret_kind', 'secret_meets_policy'],
]

/**
 * Finds the credentials of people in a data set, each once for a person, in the order of its shards. Rows of others
 * reach no file.
 * @param take gets the result, which cannot be read any more once it has resolved
 * @throws ExportError `config` when nothing is exported, or rows cannot be told apart as it takes; `damaged` when a shard
 *   cannot be read; the reason of `stop`
 */
export async function matchPeople<T>(
  pipeline: Pipeline,
  directory: Directory,
  options: MatchOptions,
  take: (result: Matches) => Promise<T>,
): Promise<T> {
  requireColumns(pipeline, options)
  const { transform } = pipeline
  const store = openDataSet(pipeline)
  const manifest = await requireManifest(store, pipeline)
  checkMaskKey(manifest, options.maskKey, pipeline)
  await requireShards(store, manifest)
  const columns = columnsOf(pipeline)
  const types = new Map(columns.map(({ name, type }) => [name, type]))
  const shown = ROW_COLUMNS.filter((name) => types.has(name))
  const values = ['identity_name', ...shown].map((name) => VALUES[types.get(name)!]?.(name) ?? name)
  const where = conditionOf(transform.identity === 'hmac', options)
  const sqlOf = (rows: string): string => `SELECT ${values.join(', ')} FROM (${rows}) WHERE ${where}`
  const groups = shardGroups(pipeline, store, manifest, columns, sqlOf, options.stop)
  const found = new Found(directory, options.plusTags, transform.identity === 'hmac', shown)
  return findRows(directory.forms, groups, options.stop, (batches) =>
    take({ columns: [keyName(directory.key), 'identity', ...shown], matches: found.of(batches) }),
  )
}

/** How values of a type come from DuckDB: strings as bytes, since its package drops a U+FEFF at their beginning. */
const VALUES: { readonly [Type in ColumnType]?: (name: string) => string } = {
  text: (name) => `encode(${name})`,
  timestamp: (name) => `epoch_us(${name})`,
}

/** The key's column under its own name, unless it is one that follows. */
function keyName(key: string): string {
  return key === 'identity' || ROW_COLUMNS.includes(key) ? `directory_${key}` : key
}

/**
 * The rows that may be theirs. Of plain ASCII DuckDB knows the normal form; what needs more is left to
 * {@link normalIdentity}, which decides anyway.
 */
function conditionOf(isMasked: boolean, { since, plusTags }: MatchOptions): string {
  const isIn = (form: string): string => `${form} IN (SELECT form FROM ${LOOKUP})`
  const isAscii =
    "strlen(identity_name) = length(identity_name) AND NOT contains(lower(identity_name), 'xn--')"
  const isPlain = plusTags ? `${isAscii} AND NOT contains(identity_name, '+')` : isAscii
  const plain = isIn(`lower(trim(identity_name, ' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)))`)
  const isTheirs = isMasked ? isIn('identity_name') : `CASE WHEN ${isPlain} THEN ${plain} ELSE true END`
  return since === null ? isTheirs : `imported_at >= '${formatInstant(since)}'::TIMESTAMPTZ AND ${isTheirs}`
}

/** What was found, by the rows that may be it. */
class Found {
  /** By person: ids of their credentials so far. */
  readonly #ids = new Map<number, Set<unknown>>()
  readonly #directory: Directory
  readonly #plusTags: boolean
  readonly #isMasked: boolean
  readonly #id: number
  readonly #importedAt: number

  constructor(directory: Directory, plusTags: boolean, isMasked: boolean, shown: readonly string[]) {
    this.#directory = directory
    this.#plusTags = plusTags
    this.#isMasked = isMasked
    this.#id = shown.indexOf('id')
    this.#importedAt = shown.indexOf('imported_at')
  }

  async *of(batches: AsyncIterable<readonly QueryRow[]>): AsyncGenerator<readonly Match[]> {
    for await (const rows of batches) yield rows.flatMap((row) => this.#matchesOf(row as Match['cells']))
  }

  #matchesOf([identity, ...values]: Match['cells']): readonly Match[] {
    const { keys } = this.#directory
    const at = values[this.#importedAt]
    if (at != null) values[this.#importedAt] = formatTimestamp(microsOf(at as number | string))
    return this.#addressesOf(String(identity)).flatMap(({ person, spelling }) =>
      // Queries may share a credential; so may addresses of a person, by a plus tag.
      this.#id < 0 || this.#isNew(person, values[this.#id])
        ? [{ person, cells: [keys[person]!, spelling, ...values] }]
        : [],
    )
  }

  #addressesOf(identity: string): readonly DirectoryAddress[] {
    const directory = this.#directory
    const form = this.#isMasked ? identity : normalIdentity(identity)
    const exact = directory.addressesOf(form)
    const untagged = this.#plusTags ? form.replace(/^([^+]+)\+.*(?=@[^@]*$)/, '$1') : form
    return untagged === form ? exact : [...exact, ...directory.addressesOf(untagged)]
  }

  #isNew(person: number, id: unknown): boolean {
    const ids = this.#ids.get(person) ?? new Set()
    if (ids.has(id)) return false
    this.#ids.set(person, ids.add(id))
    return true
  }
}

function microsOf(value: number | string): Int64 {
  return typeof value === 'number' ? value : int64(BigInt(value))
}

function requireColumns(pipeline: Pipeline, { since, plusTags }: MatchOptions): void {
  const { extract, transform } = pipeline
  const refused = (what: string, where: string, next: string): ExportError =>
    new ExportError({ kind: 'config', what, where, next })
  const isDropped = transform.identity === 'drop'
  const key = isDropped ? 'transform.identity' : 'transform.columns'
  if (!rulesOf(extract.resource).holdsPeople || isDropped || !transform.columns.includes('identity_name'))
    throw refused(
      'The data set holds no identities, so nobody can be found in it',
      locationOf(pipeline, key),
      'Export to another load.path with transform.identity: hmac, which shows no address and can be matched.',
    )
  if (since !== null && !transform.columns.includes('imported_at'))
    throw refused('The data set has no column imported_at', '--since', 'Leave --since out.')
  if (plusTags && transform.identity === 'hmac')
    throw refused(
      'Digests do not show plus tags: a+shop@b and a@b have two of them',
      '--plus-tags',
      'Leave it out, and list the tagged addresses that you know.',
    )
}
