import { createHash } from 'node:crypto'
import { ExportError, type NamedPipeline, type OwnedStore, type Pipeline, placeOf } from '../core/index.ts'
import {
  createEncoder,
  type EncodeSettings,
  importedAt,
  PageRows,
  rowGroupRows,
  type ShardWriter,
  shardExtension,
  shardWriter,
} from '../load/index.ts'
import {
  columnsOf,
  encodeRecordBatch,
  type RowBatch,
  type RowValue,
  type Schema,
  type Span,
  spanOf,
  valueAt,
  withSchema,
} from '../rows/index.ts'
import type { CheckpointState, SealedShard, ShardIdentity } from '../state/index.ts'
import { valueColumn } from '../transform/index.ts'
import type { WriteOptions } from './options.ts'
import { BATCH_ROWS, namingShard, shardReader } from './read-shard.ts'

/**
 * Writes the rows in their order, under a name that was never used. All have the schema of `identity`. Damage must not get a new checksum.
 * @throws ExportError `damaged` when a shard is not what was sealed
 */
export async function rewriteShards(
  store: OwnedStore,
  pipeline: NamedPipeline,
  shards: readonly SealedShard[],
  { partitions = shards.flatMap((shard) => shard.partitions), ...identity }: RewrittenIdentity,
  { write, schemas }: ShardWriting,
  without: Without,
): Promise<SealedShard> {
  const own = withSchema(pipeline, schemas[identity.schema]!)
  let span: Span | null = null
  async function* batches(): AsyncGenerator<Uint8Array> {
    for await (const page of rowsOf(store, own, shards, without)) {
      const rows = { from: 0, to: page.recordBatch.rows }
      span = spanOf(span, importedAt({ page, rows }, 0, rows.to))
      yield page.bytes
    }
  }
  const written = await write(identity, batches())
  return { ...written, partitions: [...new Set(partitions)], imported_at: span }
}

/** Rows that do not come, by their `identity_name`; null: all come. */
export type Without = { has(identity: RowValue): boolean } | null

/** Default: the partitions of the shards. */
type RewrittenIdentity = ShardIdentity & { readonly partitions?: readonly string[] }

async function* rowsOf(
  store: OwnedStore,
  pipeline: NamedPipeline,
  shards: readonly SealedShard[],
  without: Without,
): AsyncGenerator<PageRows> {
  const { readBatches } = await import('../load/inspect/index.ts')
  const columns = columnsOf(pipeline)
  // Names of sources and values of queries repeat.
  const values = columns.map(({ name, type }) => valueColumn(type, /^(?:source|query)_/.test(name)))
  for (const shard of shards) {
    const reader = shardReader(store, shard)
    const hash = createHash('sha256')
    for await (const chunk of reader.stream()) hash.update(chunk)
    if (hash.digest('hex') !== shard.sha256) throw changedShard(shard.path)
    try {
      for await (const batch of readBatches(reader, pipeline.load.format, columns, BATCH_ROWS)) {
        const identity = without === null ? null : valuesOf(batch, 'identity_name')
        const read = columns.map(({ name }) => valuesOf(batch, name))
        for (const each of values) each.reset()
        let rows = 0
        for (let row = 0; row < batch.rows; row++) {
          if (identity !== null && without!.has(identity(row))) continue
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
          isTime ? (times.values as PageRows['times']) : null,
        )
      }
    } catch (error) {
      throw namingShard(shard, error)
    }
  }
}

/** The values of a column; null each if there is none. */
export function valuesOf(batch: RowBatch, name: string): (row: number) => RowValue {
  const column = batch.columns.find((candidate) => candidate.name === name)
  return (row) => (column === undefined ? null : valueAt(column, row))
}

export function changedShard(path: string): ExportError {
  return new ExportError({
    kind: 'damaged',
    what: 'A shard is not what was written',
    where: path,
    next: '`verify` prints the command that exports it again. Then run this one again; nothing was changed.',
  })
}

/** The parts whose rows are in some shards, as ranges. */
export function standsFor(shards: readonly SealedShard[]): [number, number][] {
  const all = shards.flatMap(({ path, stands_for = [] }) => {
    const { part } = placeOf(path)
    return [[part, part] as const, ...stands_for]
  })
  const ranges: [number, number][] = []
  for (const [from, to] of all.sort(([a], [b]) => a - b)) {
    const last = ranges.at(-1)
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else ranges.push([from, to])
  }
  return ranges
}

/** The writer of shards, and their schemas by number. */
type ShardWriting = { readonly write: ShardWriter; readonly schemas: readonly Schema[] }

export function writingOf(
  store: OwnedStore,
  pipeline: NamedPipeline,
  schemas: readonly Schema[],
  options: Parameters<typeof encodeSettings>[1],
): ShardWriting {
  const { format } = pipeline.load
  const write = shardWriter({
    store,
    encoderOf: (schema) => createEncoder(encodeSettings(withSchema(pipeline, schemas[schema]!), options)),
    extension: shardExtension(format),
    rowGroupRows: rowGroupRows(format),
  })
  return { write, schemas }
}

/** Numbers of shards and parts that no other shard has had. */
export class FreeNumbers {
  readonly #state: CheckpointState
  readonly #parts = new Map<string, number>()
  #shard: number

  constructor(state: CheckpointState) {
    this.#state = state
    this.#shard = state.nextShard
  }

  take(folder: string, schema: number): ShardIdentity {
    const part = this.#parts.get(folder) ?? this.#state.partsOf.get(folder) ?? 0
    this.#parts.set(folder, part + 1)
    return { shard: this.#shard++, folder, part, schema }
  }
}

function encodeSettings(
  pipeline: Pipeline,
  { version, build }: Pick<WriteOptions, 'version' | 'build'>,
): EncodeSettings {
  const { name, transform, load } = pipeline
  const columns = columnsOf(pipeline)
  return {
    format: load.format,
    columns,
    // In this exact form: parquet-java ignores the statistics of a writer whose name it cannot parse.
    createdBy: `spillway version ${version} (build ${build})`,
    fileMetadata: {
      'spillway.pipeline': name,
      'spillway.masking': JSON.stringify({ secret: transform.secret, identity: transform.identity }),
      'spillway.columns': JSON.stringify(
        Object.fromEntries(columns.map((column) => [column.name, column.meaning])),
      ),
    },
  }
}
