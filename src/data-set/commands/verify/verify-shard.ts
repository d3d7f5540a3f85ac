import { createHash } from 'node:crypto'
import {
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
import type { ManifestShard } from '../../../state/index.ts'
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
  const namesOnly = load.format.kind === 'csv'
  const expected = columns.map((column) => ({ ...column, type: typeName(column.type, load.format) }))
  const difference = differenceOf(typesByName(found.columns, namesOnly), typesByName(expected, namesOnly))
  if (difference !== null) return { problem: `its columns differ: ${difference}`, cause: 'columns' }
  for (const [column, times] of unmasked) {
    return {
      problem: `${numberOf(times, 'value')} of ${column} ${times === 1 ? 'is' : 'are'} not masked`,
      cause: 'unmasked',
    }
  }
  return null
}

/** In the order of the columns; CSV has names only. */
function typesByName(columns: InspectedShard['columns'], names: boolean): ReadonlyMap<string, string> {
  const types = columns.map(
    ({ name, type, nullable }) => [name, names ? '' : `${type}${nullable ? '' : ' not null'}`] as const,
  )
  return new Map(types)
}

function differenceOf(is: ReadonlyMap<string, string>, wanted: ReadonlyMap<string, string>): string | null {
  const lacking = [...wanted.keys()].filter((name) => !is.has(name))
  const besides = [...is.keys()].filter((name) => !wanted.has(name))
  const others = [...is].filter(([name, type]) => wanted.has(name) && wanted.get(name) !== type)
  const parts = [
    ...(lacking.length === 0 ? [] : [`without ${lacking.join(', ')}`]),
    ...(besides.length === 0 ? [] : [`with ${besides.join(', ')}`]),
    ...others.map(([name, type]) => `${name} is ${type} instead of ${wanted.get(name)}`),
  ]
  if (parts.length > 0) return parts.join('; ')
  return [...is.keys()].join() === [...wanted.keys()].join() ? null : 'they are in another order'
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
