import { createHash } from 'node:crypto'
import {
  type Format,
  getOrInsert,
  IDENTITY_POLICIES,
  identityIn,
  isExportError,
  numberOf,
  type Pipeline,
  rulesOf,
  type Store,
} from '../../../core/index.ts'
import type { InspectedShard, ShardReader } from '../../../load/index.ts'
import { columnsOf, typeName } from '../../../rows/index.ts'
import { type ManifestShard, splitPath } from '../../../state/index.ts'
import { looksMasked } from '../../../transform/index.ts'
import { shardReader } from '../../read-shard.ts'

/** `cause` is the kind, which many shards may share; `problem` describes this shard. */
export type Problem = {
  readonly path: string
  readonly problem: string
  readonly cause: ProblemCause
  /** What a person has to do; absent: a command is enough. */
  readonly next?: string
}

export type ProblemCause =
  | 'missing'
  | 'size'
  | 'checksum'
  | 'unreadable'
  | 'rows'
  | 'columns'
  | 'unmasked'
  | 'not_on_record'
  | 'manifest'
  | 'table'
  | 'catalog'
  | 'signature'
  | 'checkpoint'
  | 'unfinished'

type Finding = Omit<Problem, 'path'>

export async function verifyShard(
  store: Store,
  pipeline: Pipeline,
  shard: ManifestShard,
  onId: ((id: string | null) => void) | null,
): Promise<Finding | null> {
  const size = await store.size(shard.path)
  if (size === null) return { problem: 'is missing', cause: 'missing' }
  if (size !== shard.bytes) {
    return { problem: `holds ${numberOf(size, 'byte')} instead of ${shard.bytes}`, cause: 'size' }
  }
  // In object storage every range is a request, so a shard is read as a whole unless it is too large for memory.
  const wholeBytes = pipeline.load.location.kind === 'disk' ? undefined : MAX_HELD_BYTES
  const reader = shardReader(store, shard, wholeBytes)
  const hash = createHash('sha256')
  for await (const chunk of reader.stream()) hash.update(chunk)
  if (hash.digest('hex') !== shard.sha256) {
    return { problem: 'its SHA-256 is not the one on record', cause: 'checksum' }
  }
  try {
    return await verifyContent(reader, pipeline, shard, onId)
  } catch (error) {
    if (!isExportError(error)) throw error
    return { problem: error.what, cause: 'unreadable' }
  }
}

async function verifyContent(
  reader: ShardReader,
  pipeline: Pipeline,
  shard: ManifestShard,
  onId: ((id: string | null) => void) | null,
): Promise<Finding | null> {
  const { load } = pipeline
  const columns = columnsOf(pipeline)
  const checks = maskingChecks(pipeline, shard)
  const unmasked = new Map<string, number>()
  // Loaded here, so that other commands start faster.
  const { inspectShard } = await import('../../../load/inspect/index.ts')
  const found = await inspectShard(reader, load.format, {
    columns,
    watch: [...checks.keys(), ...(onId === null ? [] : ['id'])],
    onText: (column, value) => {
      if (column === 'id') onId?.(value)
      else if (checks.get(column)?.(value) !== true) {
        unmasked.set(column, (unmasked.get(column) ?? 0) + 1)
      }
    },
  })
  if (found.rows !== shard.rows) {
    return { problem: `holds ${numberOf(found.rows, 'row')} instead of ${shard.rows}`, cause: 'rows' }
  }
  const expected = columns.map((column) => ({ ...column, type: typeName(column.type, load.format) }))
  const [is, wanted] = [found.columns, expected].map((each) => columnsText(each, load.format))
  if (is !== wanted) return { problem: `its columns are ${is} instead of ${wanted}`, cause: 'columns' }
  for (const [column, times] of unmasked) {
    return {
      problem: `${numberOf(times, 'value')} of ${column} ${times === 1 ? 'is' : 'are'} not masked`,
      cause: 'unmasked',
    }
  }
  return null
}

/** In their order. */
function columnsText(columns: InspectedShard['columns'], { kind }: Format): string {
  if (kind === 'csv') return columns.map(({ name }) => name).join(', ')
  return columns.map(({ name, type, nullable }) => `${name} ${type}${nullable ? '' : ' not null'}`).join(', ')
}

type Check = (value: string | null) => boolean

/** Checks that values can be results of the masking policies, by column; reports hold no secrets. */
function maskingChecks(
  { extract, transform }: Pipeline,
  { partitions }: ManifestShard,
): ReadonlyMap<string, Check> {
  const checks = new Map<string, Check>()
  if (!rulesOf(extract.resource).holdsPeople) return checks
  const watch = (column: string, check: Check): void => {
    if (transform.columns.includes(column)) checks.set(column, check)
  }
  watch('hash', (value) => looksMasked(transform.secret, value))
  if (!IDENTITY_POLICIES[transform.identity].shows) {
    watch('identity_name', (value) => looksMasked(transform.identity, value))
    // Names of partitions begin with the kind of their query.
    const isHidden =
      partitions.length > 0 && partitions.every((key) => identityIn(key.split('.', 1)[0]!) !== 'none')
    if (isHidden) watch('query_value', (value) => looksMasked(transform.identity, value))
  }
  return checks
}

// Of a shard of 1,000,000 rows not a third.
const MAX_HELD_BYTES = 256 << 20

/** So many rows of a folder are compared: 160 MB. */
const MAX_ROWS = 20_000_000

type Folder = { rows: number; readonly queries: Set<string> }

/** Counts rows whose id comes before within their query. Shards of a folder come one after the other. */
export class RepeatedIds {
  readonly #folders = new Map<string, Folder>()
  #folder = ''
  #ids = new BigInt64Array()
  #seen = 0
  #repeated = 0

  constructor(shards: readonly ManifestShard[]) {
    for (const { path, rows, partitions } of shards) {
      const begin = (): Folder => ({ rows: 0, queries: new Set() })
      const folder = getOrInsert(this.#folders, splitPath(path)[0], begin)
      folder.rows += rows
      for (const key of partitions) folder.queries.add(splitPath(key)[0])
    }
  }

  /** @returns what takes the id of each row; null: several queries share the folder, or it has too many rows */
  of({ path }: ManifestShard): ((id: string | null) => void) | null {
    const [name] = splitPath(path)
    const { rows, queries } = this.#folders.get(name)!
    if (queries.size > 1 || rows > MAX_ROWS) return null
    if (name !== this.#folder) {
      this.#count()
      this.#folder = name
      this.#ids = new BigInt64Array(rows)
    }
    return (id) => {
      // Types are compared later.
      if (id !== null && /^-?\d+$/.test(id)) this.#ids[this.#seen++] = BigInt(id)
    }
  }

  get total(): number {
    this.#count()
    return this.#repeated
  }

  #count(): void {
    const ids = this.#ids.subarray(0, this.#seen).sort()
    for (let i = 1; i < ids.length; i++) if (ids[i] === ids[i - 1]) this.#repeated++
    this.#seen = 0
  }
}
