import { randomUUID } from 'node:crypto'
import { type OwnedStore, sideBySide } from '../../core/index.ts'
import type { ColumnSpec, ColumnStatistics, ColumnType } from '../../rows/index.ts'
import { isCompaction } from '../compaction.ts'
import {
  DELTA_FOLDER,
  type OpenTable,
  type OwnTableSettings,
  type TableContent,
  type TableSettings,
  type TableShard,
  type TableState,
  type TableUpdate,
  untilCommitted,
  withBounds,
} from '../table.ts'
import {
  type DeltaState,
  ENGINE,
  encoded,
  endRemoval,
  isOwnLog,
  readLog,
  removeLog,
  SHA256_TAG,
  writeCommit,
} from './delta-log.ts'

// Readers replay the whole log, and so does every update.
const MANY_COMMITS = 1000

/**
 * Every reader knows it (reader version 1, writer version 2). No checkpoints: patterns for shards would find these.
 * Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
 */
export const deltaTable: OpenTable = {
  async read(store, settings) {
    const log = await readLog(store, settings)
    return log === null ? null : stateOf(log, settings)
  },
  async update(store, settings, content, update) {
    // Its versions begin again, which shortens it.
    if (update.rebuild) await removeLog(store)
    const log = await untilCommitted(DELTA_FOLDER, () => commit(store, settings, content, update))
    if (log.version + 1 >= MANY_COMMITS) update.warn(tooLong(log.version))
    // The log stays whole.
    return { state: stateOf(log, settings), removeExpired: async () => {} }
  },
  isOwn: isOwnLog,
  remove: removeLog,
}

function stateOf({ version, shards }: DeltaState, { root }: TableSettings): TableState {
  return { format: 'delta', location: root, snapshot: version, shards, metadataLocation: null }
}

function tooLong(version: number): string {
  return `the log of the Delta table has ${version + 1} commits, and readers read each; \`spillway tables --rebuild\` begins it anew with one`
}

/** @returns null: another commit has the next version */
async function commit(
  store: OwnedStore,
  settings: OwnTableSettings,
  content: TableContent,
  update: TableUpdate,
): Promise<DeltaState | null> {
  await endRemoval(store)
  const before = await readLog(store, settings)
  const wanted = new Map(content.shards.map((shard) => [shard.path, shard]))
  const known = before?.shards ?? new Map<string, TableShard>()
  const added = content.shards.filter(({ path, sha256 }) => known.get(path)?.sha256 !== sha256)
  const removed = [...known.keys()].filter((path) => !wanted.has(path))
  const schema = JSON.stringify(schemaOf(content.columns))
  if (before?.schema === schema && added.length + removed.length === 0) return before
  if (before !== null && removed.length > 0 && before.begunMs < (content.forgottenMs ?? 0)) {
    // Bounds of a shard of one row are values of a person, and commits stay as long as the log.
    await removeLog(store)
    return commit(store, settings, content, update)
  }
  const version = (before?.version ?? -1) + 1
  const table = {
    // Readers that remember versions must not take a log that begins anew for the former one.
    id: before?.id ?? randomUUID(),
    schema,
    // A clock may be set back.
    begunMs: before?.begunMs ?? Math.max(update.nowMs, content.forgottenMs ?? 0),
  }
  const gone = removed.flatMap((path) => known.get(path) ?? [])
  const dataChange = !isCompaction(added, gone)
  const adds: string[] = []
  await sideBySide(added.entries(), async ([i, shard]) => {
    adds[i] = addLine(shard, await update.statisticsOf(shard), update.nowMs, dataChange)
  })
  const lines = [
    line({ commitInfo: commitInfo(settings, content, operationOf(added, removed, update), update) }),
    ...(before === null ? [line({ protocol: { minReaderVersion: 1, minWriterVersion: 2 } })] : []),
    ...(before?.schema === schema ? [] : [line({ metaData: metaData(settings, table) })]),
    ...removed.map((path) =>
      line({ remove: { path: encoded(path), deletionTimestamp: update.nowMs, dataChange } }),
    ),
    ...adds,
  ]
  if (!(await writeCommit(store, version, lines))) return null
  return { version, ...table, shards: wanted }
}

function line(action: unknown): string {
  return `${JSON.stringify(action)}\n`
}

type Operation = { readonly operation: string; readonly mode?: string }

function operationOf(
  added: readonly unknown[],
  removed: readonly unknown[],
  { rebuild }: TableUpdate,
): Operation {
  if (removed.length > 0 && added.length === 0) return { operation: 'DELETE' }
  return {
    operation: rebuild ? 'REBUILD' : 'WRITE',
    mode: removed.length > 0 ? 'Overwrite' : 'Append',
  }
}

function commitInfo(
  { dataSetId }: OwnTableSettings,
  { manifestSha256, runId }: TableContent,
  { operation, ...mode }: Operation,
  { nowMs }: TableUpdate,
) {
  return {
    // First, in this order: they mark a commit of the data set.
    engineInfo: ENGINE,
    operationParameters: {
      data_set_id: dataSetId,
      ...mode,
      manifest_sha256: manifestSha256,
      ...(runId === null ? {} : { run_id: runId }),
    },
    operation,
    timestamp: nowMs,
  }
}

function metaData(
  { dataSetId }: OwnTableSettings,
  { id, schema, begunMs }: Pick<DeltaState, 'id' | 'schema' | 'begunMs'>,
) {
  return {
    id,
    format: { provider: 'parquet', options: {} },
    schemaString: schema,
    partitionColumns: [],
    configuration: { 'spillway.data_set_id': dataSetId },
    createdTime: begunMs,
  }
}

const TYPES: Readonly<Record<ColumnType, unknown>> = {
  int64: 'long',
  text: 'string',
  boolean: 'boolean',
  timestamp: 'timestamp',
  list: { type: 'array', elementType: 'string', containsNull: true },
}

function schemaOf(columns: readonly ColumnSpec[]) {
  const fields = columns.map(({ name, type, nullable, meaning }) => ({
    name,
    type: TYPES[type],
    nullable,
    metadata: meaning === '' ? {} : { comment: meaning },
  }))
  return { type: 'struct', fields }
}

function addLine(
  shard: TableShard,
  statistics: readonly ColumnStatistics[],
  nowMs: number,
  dataChange: boolean,
): string {
  return line({
    add: {
      path: encoded(shard.path),
      partitionValues: {},
      size: shard.bytes,
      modificationTime: nowMs,
      dataChange,
      stats: statsText(shard, statistics),
      tags: { [SHA256_TAG]: shard.sha256 },
    },
  })
}

/** JSON by hand, since numbers may be larger than JavaScript's. */
function statsText({ rows }: TableShard, statistics: readonly ColumnStatistics[]): string {
  const bounded = withBounds(statistics)
  const members = (entries: readonly (readonly [string, string])[]): string =>
    `{${entries.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
  return members([
    ['numRecords', String(rows)],
    ['minValues', members(boundsOf(bounded, 'min'))],
    ['maxValues', members(boundsOf(bounded, 'max'))],
    ['nullCount', members(statistics.map(({ name, nulls }) => [name, String(nulls)]))],
  ])
}

function boundsOf(
  bounded: ReturnType<typeof withBounds>,
  end: 'min' | 'max',
): readonly (readonly [string, string])[] {
  return bounded.flatMap(({ name, type, bounds }) => {
    const json = boundJson(type, bounds[end], end)
    return json === null ? [] : [[name, json] as const]
  })
}

// 10000-01-01
const END_OF_TIME_MS = 253_402_300_800_000

/** Readers have milliseconds, so bounds are rounded outwards. @returns null: readers would not know the year */
function boundJson(type: ColumnType, value: bigint | string, end: 'min' | 'max'): string | null {
  if (typeof value === 'string') return JSON.stringify(value)
  if (type !== 'timestamp') return String(value)
  const down = value - (((value % 1000n) + 1000n) % 1000n)
  const micros = end === 'min' || down === value ? down : down + 1000n
  const ms = Number(micros / 1000n)
  return ms < END_OF_TIME_MS ? JSON.stringify(new Date(ms).toISOString()) : null
}
