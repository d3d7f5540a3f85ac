import {
  ExportError,
  formatInstant,
  formatTimestamp,
  IDENTITY_POLICIES,
  type Int64,
  int64,
  type Micros,
  type Pipeline,
} from '../../../core/index.ts'
import { type ColumnType, columnsOf } from '../../../rows/index.ts'
import { checkFingerprint, checkMaskKey, type Manifest } from '../../../state/index.ts'
import { normalIdentity } from '../../../transform/index.ts'
import { findRows, LOOKUP } from '../../../warehouse/index.ts'
import type { DataSet } from '../../data-set.ts'
import type { Directory, DirectoryAddress } from './directory.ts'
import { requireIdentities } from './identities.ts'
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

export type Match = {
  /** Its index in the directory. */
  readonly person: number
  /** Key and address as in the directory, then columns of the row. */
  readonly cells: readonly (string | number | boolean | null)[]
}

export type Matches = {
  readonly columns: readonly string[]
  /** By person: first those with a password that the policy allows, then as in the directory. */
  readonly matches: readonly Match[]
}

const ROW_COLUMNS = [
  ...['id', 'domain', 'source_id', 'source_name', 'imported_at', 'hash_type', 'hash'],
  ...['secret_kind', 'secret_meets_policy'],
]

/** Rows of others reach no file. @throws ExportError `config` when nothing can be matched, `damaged`; when stopped */
export async function matchPeople(
  dataSet: DataSet,
  directory: Directory,
  options: MatchOptions,
): Promise<Matches> {
  requireColumns(dataSet.pipeline, options)
  return dataSet.reading((manifest) => matchedBy(manifest, dataSet, directory, options))
}

async function matchedBy(
  manifest: Manifest,
  dataSet: DataSet,
  directory: Directory,
  options: MatchOptions,
): Promise<Matches> {
  const { pipeline, store } = dataSet
  const { transform } = pipeline
  checkMaskKey(manifest, options.maskKey, pipeline)
  for (const fingerprint of directory.fingerprints) checkFingerprint(manifest, fingerprint, pipeline)
  await dataSet.requireListed(manifest)
  const columns = columnsOf(pipeline)
  const types = new Map(columns.map(({ name, type }) => [name, type]))
  const shown = ROW_COLUMNS.filter((name) => types.has(name))
  const values = ['identity_name', ...shown].map((name) => VALUES[types.get(name)!]?.(name) ?? name)
  const { isKeyed } = IDENTITY_POLICIES[transform.identity]
  const where = conditionOf(isKeyed, options)
  const sqlOf = (rows: string): string => `SELECT ${values.join(', ')} FROM (${rows}) WHERE ${where}`
  const groups = shardGroups(pipeline, store, manifest, columns, sqlOf, options.stop)
  const found = new Found(directory, options.plusTags, isKeyed, shown)
  await findRows(directory.addresses.forms(), groups, options.stop, (rows) => {
    for (const row of rows) found.add(row as Match['cells'])
  })
  return { columns: [keyName(directory.key), 'identity', ...shown], matches: found.sorted() }
}

/** How values of a type come from DuckDB: strings as bytes, since its package drops a U+FEFF at their beginning. */
const VALUES: { readonly [Type in ColumnType]?: (name: string) => string } = {
  text: (name) => `encode(${name})`,
  timestamp: (name) => `epoch_us(${name})`,
}

/** The key's column under its own name, unless it is one that follows. */
function keyName(key: string): string {
  const folded = key.toLowerCase()
  return folded === 'identity' || ROW_COLUMNS.includes(folded) ? `directory_${key}` : key
}

/** DuckDB knows the normal form of plain ASCII; {@link normalIdentity} decides the rest, and anyway. */
function conditionOf(isMasked: boolean, { since, plusTags }: MatchOptions): string {
  const isIn = (form: string): string => `${form} IN (SELECT form FROM ${LOOKUP})`
  const isAscii =
    "strlen(identity_name) = length(identity_name) AND NOT contains(lower(identity_name), 'xn--')"
  const isPlain = `${isAscii} AND NOT regexp_matches(identity_name, '${plusTags ? '[+]|' : ''}(?i:mailto:)|[.][\\s\\x0b]*$')`
  const plain = isIn(`lower(trim(identity_name, ' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)))`)
  const isTheirs = isMasked ? isIn('identity_name') : `CASE WHEN ${isPlain} THEN ${plain} ELSE true END`
  return since === null ? isTheirs : `imported_at >= '${formatInstant(since)}'::TIMESTAMPTZ AND ${isTheirs}`
}

class Found {
  readonly #matches: Match[] = []
  /** People with a password that the policy allows. */
  readonly #urgent = new Set<number>()
  /** By person: ids of their credentials so far. */
  readonly #ids = new Map<number, Set<unknown>>()
  /** Texts that many rows share, such as names of sources, each kept once. */
  readonly #texts = new Map<string, string>()
  readonly #directory: Directory
  readonly #plusTags: boolean
  readonly #isMasked: boolean
  readonly #id: number
  readonly #importedAt: number
  readonly #meets: number
  readonly #shared: readonly number[]

  constructor(directory: Directory, plusTags: boolean, isMasked: boolean, shown: readonly string[]) {
    this.#directory = directory
    this.#plusTags = plusTags
    this.#isMasked = isMasked
    this.#id = shown.indexOf('id')
    this.#importedAt = shown.indexOf('imported_at')
    this.#meets = shown.indexOf('secret_meets_policy')
    this.#shared = ['source_id', 'source_name', 'domain', 'hash_type', 'secret_kind'].map((name) =>
      shown.indexOf(name),
    )
  }

  add([identity, ...values]: Match['cells']): void {
    const theirs = this.#addressesOf(String(identity)).filter(
      // Queries may share a credential; so may addresses of a person, by a plus tag.
      ({ person }) => this.#id < 0 || this.#isNew(person, values[this.#id]),
    )
    if (theirs.length === 0) return
    const at = values[this.#importedAt]
    if (at != null) values[this.#importedAt] = formatTimestamp(microsOf(at as number | string))
    for (const i of this.#shared) {
      const text = values[i]
      if (typeof text === 'string') values[i] = this.#once(text)
    }
    for (const { person, spelling } of theirs) {
      if (values[this.#meets] === true) this.#urgent.add(person)
      this.#matches.push({ person, cells: [this.#directory.people[person]!, spelling, ...values] })
    }
  }

  sorted(): readonly Match[] {
    const rank = ({ person }: Match): number => (this.#urgent.has(person) ? 0 : 1)
    return this.#matches.sort((a, b) => rank(a) - rank(b) || a.person - b.person)
  }

  #addressesOf(identity: string): readonly DirectoryAddress[] {
    const { addresses } = this.#directory
    const form = this.#isMasked ? identity : normalIdentity(identity)
    const exact = addresses.of(form)
    const untagged = this.#plusTags ? form.replace(/^([^+]+)\+.*(?=@[^@]*$)/, '$1') : form
    return untagged === form ? exact : [...exact, ...addresses.of(untagged)]
  }

  #once(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    if (this.#texts.size < MAX_SHARED_TEXTS) this.#texts.set(text, text)
    return text
  }

  #isNew(person: number, id: unknown): boolean {
    const ids = this.#ids.get(person) ?? new Set()
    if (ids.has(id)) return false
    this.#ids.set(person, ids.add(id))
    return true
  }
}

const MAX_SHARED_TEXTS = 10_000

function microsOf(value: number | string): Int64 {
  return typeof value === 'number' ? value : int64(BigInt(value))
}

function requireColumns(pipeline: Pipeline, { since, plusTags }: MatchOptions): void {
  const { transform } = pipeline
  const refused = (what: string, where: string, next: string): ExportError =>
    new ExportError({ kind: 'config', what, where, next })
  requireIdentities(
    pipeline,
    'Export to another load.path with transform.identity: hmac, which shows no address and can be matched.',
  )
  if (since !== null && !transform.columns.includes('imported_at'))
    throw refused('The data set has no column imported_at', '--since', 'Leave --since out.')
  if (plusTags && IDENTITY_POLICIES[transform.identity].isKeyed)
    throw refused(
      'Digests do not show plus tags: a+shop@b and a@b have two of them',
      '--plus-tags',
      'Leave it out, and list the tagged addresses that you know.',
    )
}
