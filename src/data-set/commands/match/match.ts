import {
  ExportError,
  formatTimestamp,
  IDENTITY_POLICIES,
  type Int64,
  type Micros,
  type Pipeline,
} from '../../../core/index.ts'
import type { Wanted } from '../../../load/index.ts'
import { columnsOf, type RowBatch, type RowValue } from '../../../rows/index.ts'
import { checkFingerprint, checkMaskKey, type Manifest } from '../../../state/index.ts'
import { normalIdentity } from '../../../transform/index.ts'
import type { DataSet } from '../../data-set.ts'
import { shardBatches } from '../../read-shard.ts'
import { valuesOf } from '../../rewriting.ts'
import type { Directory, DirectoryAddress } from './directory.ts'
import { requireIdentities } from './identities.ts'

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
  const { transform, load } = pipeline
  checkMaskKey(manifest, options.maskKey, pipeline)
  for (const fingerprint of directory.fingerprints) checkFingerprint(manifest, fingerprint, pipeline)
  await dataSet.requireListed(manifest)
  const shown = ROW_COLUMNS.filter((name) => transform.columns.includes(name))
  const columns = columnsOf(pipeline, ['identity_name', ...shown])
  const found = new Found(directory, shown, IDENTITY_POLICIES[transform.identity].isKeyed, options)
  const reading = { wanted: found, batchRows: BATCH_ROWS }
  for (const shard of manifest.shards) {
    for await (const batch of shardBatches(store, shard, load.format, columns, reading)) {
      options.stop.throwIfAborted()
      found.add(batch)
    }
  }
  return { columns: [keyName(directory.key), 'identity', ...shown], matches: found.sorted() }
}

/** The values of more rows would outlive what V8 collects cheaply. */
const BATCH_ROWS = 500

/** The key's column under its own name, unless it is one that follows. */
function keyName(key: string): string {
  const folded = key.toLowerCase()
  return folded === 'identity' || ROW_COLUMNS.includes(folded) ? `directory_${key}` : key
}

class Found implements Wanted {
  readonly column = 'identity_name'
  readonly #matches: Match[] = []
  /** People with a password that the policy allows. */
  readonly #urgent = new Set<number>()
  /** Person and id of each match. */
  readonly #seen = new Set<string>()
  /** Texts that many rows share, such as names of sources, each kept once. */
  readonly #texts = new Map<string, string>()
  readonly #directory: Directory
  readonly #shown: readonly string[]
  readonly #isMasked: boolean
  readonly #options: MatchOptions

  constructor(directory: Directory, shown: readonly string[], isMasked: boolean, options: MatchOptions) {
    this.#directory = directory
    this.#shown = shown
    this.#isMasked = isMasked
    this.#options = options
  }

  /** Whether rows with this identity may be those of people. */
  has(identity: string): boolean {
    return this.#addressesOf(identity).length > 0
  }

  add(batch: RowBatch): void {
    const { since } = this.#options
    const [identity, importedAt] = [valuesOf(batch, 'identity_name'), valuesOf(batch, 'imported_at')]
    const [id, meets] = [valuesOf(batch, 'id'), valuesOf(batch, 'secret_meets_policy')]
    const shown = this.#shown.map((name) => [name, valuesOf(batch, name)] as const)
    for (let row = 0; row < batch.rows; row++) {
      if (since !== null && (importedAt(row) as Int64) < since) continue
      for (const { person, spelling } of this.#addressesOf(identity(row))) {
        // Queries may share a credential; so may addresses of a person, by a plus tag.
        const key = id(row) === null ? null : `${person} ${id(row)}`
        if (key !== null && this.#seen.has(key)) continue
        if (key !== null) this.#seen.add(key)
        if (meets(row) === true) this.#urgent.add(person)
        const cells = shown.map(([name, values]) => this.#cellOf(name, values(row)))
        this.#matches.push({ person, cells: [this.#directory.people[person]!, spelling, ...cells] })
      }
    }
  }

  sorted(): readonly Match[] {
    const rank = ({ person }: Match): number => (this.#urgent.has(person) ? 0 : 1)
    return this.#matches.sort((a, b) => rank(a) - rank(b) || a.person - b.person)
  }

  #addressesOf(identity: RowValue): readonly DirectoryAddress[] {
    const { addresses } = this.#directory
    const form = this.#isMasked ? String(identity) : normalIdentity(String(identity))
    const exact = addresses.of(form)
    const untagged = this.#options.plusTags ? form.replace(/^([^+]+)\+.*(?=@[^@]*$)/, '$1') : form
    return untagged === form ? exact : [...exact, ...addresses.of(untagged)]
  }

  #cellOf(name: string, value: RowValue): Match['cells'][number] {
    if (value !== null && name === 'imported_at') return formatTimestamp(value as Int64)
    if (typeof value === 'string') return SHARED.includes(name) ? this.#once(value) : value
    return typeof value === 'bigint' ? String(value) : (value as number | boolean | null)
  }

  #once(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    if (this.#texts.size < MAX_SHARED_TEXTS) this.#texts.set(text, text)
    return text
  }
}

const SHARED: readonly string[] = ['source_id', 'source_name', 'domain', 'hash_type', 'secret_kind']
const MAX_SHARED_TEXTS = 10_000

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
