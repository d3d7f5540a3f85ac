import { createHash } from 'node:crypto'
import {
  type ColumnSpec,
  columnsOf,
  ExportError,
  encodeRecordBatch,
  type Format,
  type NamedPipeline,
  type OwnedStore,
  type ShardIdentity,
  type Store,
} from '../../core/index.ts'
import { PageRows, rewriteShard, type ShardCoder, type ShardReader } from '../../load/index.ts'
import type { SealedShard } from '../../state/index.ts'
import { valueColumn } from '../../transform/index.ts'
import { readShard } from '../files.ts'
import type { People } from './people.ts'
import { countedColumns, countingRows, type RemovedRows, valuesOf } from './removed-rows.ts'

const BATCH_ROWS = 10_000

/** A finished shard, and the path at which it lies now. */
export type Located = { readonly shard: SealedShard; readonly path: string }

/**
 * Finds the rows of people in a shard. It reads their identities, and what tells their partitions.
 * @param removed counts them
 */
export async function findRows(
  store: Store,
  pipeline: NamedPipeline,
  { shard, path }: Located,
  people: People,
  removed: RemovedRows,
): Promise<void> {
  const columns = countedColumns(pipeline)
  await readShard(store, { path, bytes: shard.bytes }, async (reader) => {
    const { mayHold, readBatches } = await import('../../load/inspect/index.ts')
    const { exact } = people
    if (exact !== null && !(await mayHold(reader, pipeline.load.format, 'identity_name', exact))) return
    let rows = 0
    for await (const batch of readBatches(reader, pipeline.load.format, columns, BATCH_ROWS)) {
      rows += batch.rows
      const count = countingRows(batch, people, removed)
      for (let row = 0; row < batch.rows; row++) count(row)
    }
    if (rows !== shard.rows) throw changed(path)
  })
}

/**
 * Writes a shard anew without the rows of people, the others in their order. The shard must be what was sealed: else
 * damage would get a new checksum.
 * @param identity of the new one
 */
export async function rewriteWithout(
  store: OwnedStore,
  pipeline: NamedPipeline,
  { shard, path }: Located,
  people: People,
  identity: ShardIdentity,
  how: { readonly coder: ShardCoder; readonly extension: string; readonly rowGroupRows: number },
): Promise<SealedShard> {
  const hash = createHash('sha256')
  for await (const chunk of store.stream(path)) hash.update(chunk)
  if (hash.digest('hex') !== shard.sha256) throw changed(path)
  const columns = columnsOf(pipeline)
  const { format } = pipeline.load
  return readShard(store, { path, bytes: shard.bytes }, async (reader) => {
    const { kind: _, ...seal } = await rewriteShard(
      otherRows(reader, format, columns, people),
      { ...identity, partitions: shard.partitions },
      { store, ...how },
    )
    // What was replaced when the rows were first written is not known of each.
    return { ...seal, ...(shard.replaced === undefined ? {} : { replaced: shard.replaced }) }
  })
}

async function* otherRows(
  reader: ShardReader,
  format: Format,
  columns: readonly ColumnSpec[],
  people: People,
): AsyncGenerator<PageRows> {
  const { readBatches } = await import('../../load/inspect/index.ts')
  // Names of sources and values of queries repeat.
  const values = columns.map(({ name, type }) => valueColumn(type, /^(?:source|query)_/.test(name)))
  for await (const batch of readBatches(reader, format, columns, BATCH_ROWS)) {
    const identity = valuesOf(batch, 'identity_name')
    const read = columns.map(({ name }) => valuesOf(batch, name))
    for (const each of values) each.reset()
    let rows = 0
    for (let row = 0; row < batch.rows; row++) {
      if (people.has(identity(row))) continue
      rows++
      for (const [i, each] of values.entries()) each.add(read[i]!(row) as Parameters<typeof each.add>[0])
    }
    if (rows === 0) continue
    const groups: Parameters<(typeof values)[number]['column']>[1] = []
    const made = columns.map(({ name }, i) => values[i]!.column(name, groups))
    const times = made.find(({ name }) => name === 'imported_at')?.values
    const isTime = times?.kind === 'number' || times?.kind === 'int64'
    yield new PageRows(
      encodeRecordBatch({ rows, groups, columns: made }),
      isTime ? (times.values.slice() as PageRows['times']) : null,
    )
  }
}

function changed(path: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'A finished shard is not what was written',
    where: path,
    next: 'Run `verify --fix` first, then `forget` again: people are already kept out of what is exported anew.',
  })
}
