import { randomUUID } from 'node:crypto'
import { nullIf, type OwnedStore, sideBySide } from '../../core/index.ts'
import type { ColumnSpec, ColumnStatistics, ColumnType } from '../../rows/index.ts'
import {
  isCompaction,
  markOf,
  type OpenTable,
  type OwnTableSettings,
  sha256Of,
  type TableContent,
  type TableSettings,
  type TableShard,
  type TableState,
  type TableUpdate,
  withBounds,
} from '../table.ts'
import {
  commitPath,
  type DeltaState,
  ENGINE,
  encoded,
  isOwnLog,
  readLog,
  removeLog,
  SHA256_TAG,
} from './delta-log.ts'

// Readers replay the whole log, and so does every update.
const MANY_COMMITS = 1000

/**
 * Every reader knows it (reader version 1, writer version 2). No checkpoints: patterns for shards would find these.
 * Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
 */
export const deltaTable: OpenTable = {
  async read(store, settings, marks) {
    const log = await readLog(store, marks)
    return log === null ? null : stateOf(log, settings)
  },
  async update(store, settings, content, update) {
    const log = await commit(store, settings, content, update)
    if (log === null) return null
    const { version } = log.mark
    if (version + 1 >= MANY_COMMITS) update.warn(tooLong(version))
    // The log stays whole.
    return { state: stateOf(log, settings), removeExpired: async () => {} }
  },
  isOwn: isOwnLog,
  remove: removeLog,
}

function stateOf({ mark, shards }: DeltaState, { root }: TableSettings): TableState {
  return { format: 'delta', location: root, snapshot: mark.version, shards, metadataLocation: null }
}

function tooLong(version: number): string {
  return `the log of the Delta table has ${version + 1} commits, and readers read each; \`spillway tables --rebuild\` begins it anew with one`
}

async function commit(
  store: OwnedStore,
  settings: OwnTableSettings,
  content: TableContent,
  update: TableUpdate,
): Promise<DeltaState | null> {
  const { marks } = update
  const found = marks === null ? null : await readLog(store, marks).catch(nullIf('damaged'))
  const wanted = new Map(content.shards.map((shard) => [shard.path, shard]))
  const gone = [...(found?.shards.values() ?? [])].filter(({ path }) => !wanted.has(path))
  // Bounds of a shard of one row are values of a person, and commits stay as long as the log.
  const isKept = found !== null && (gone.length === 0 || found.begunMs >= (content.forgottenMs ?? 0))
  const before = isKept ? found : null
  const removed = isKept ? gone : []
  const added = content.shards.filter(({ path, sha256 }) => before?.shards.get(path)?.sha256 !== sha256)
  const schema = JSON.stringify(schemaOf(content.columns))
  if (before?.schema === schema && added.length + removed.length === 0) return before
  // Its versions begin again, which shortens it.
  if (before === null) await removeLog(store)
  const version = (before?.mark.version ?? -1) + 1
  const table = {
    // Readers that remember versions must not take a log that begins anew for the former one.
    id: before?.id ?? randomUUID(),
    schema,
    // A clock may be set back.
    begunMs: before?.begunMs ?? Math.max(update.nowMs, content.forgottenMs ?? 0),
  }
  const dataChange = !isCompaction(added, removed)
  const adds: string[] = []
  await sideBySide(added.entries(), async ([i, shard]) => {
    adds[i] = addLine(shard, await update.statisticsOf(shard), update.nowMs, dataChange)
  })
  const lines = [
    line({ commitInfo: commitInfo(settings, content, operationOf(added, removed), update) }),
    ...(before === null ? [line({ protocol: { minReaderVersion: 1, minWriterVersion: 2 } })] : []),
    ...(before?.schema === schema ? [] : [line({ metaData: metaData(settings, table) })]),
    ...removed.map(({ path }) =>
      line({ remove: { path: encoded(path), deletionTimestamp: update.nowMs, dataChange } }),
    ),
    ...adds,
  ]
  const path = commitPath(version)
  const files = new Map([...(before?.files ?? []), [path, sha256Of(lines)]])
  const mark = markOf(version, files)
  await update.keepMarks(before === null ? [mark] : [before.mark, mark])
  if (!(await store.create(path, lines))) return null
  return { mark, files, ...table, shards: wanted }
}

function line(action: unknown): string {
  return `${JSON.stringify(action)}\n`
}

type Operation = { readonly operation: string; readonly mode?: string }

function operationOf(added: readonly unknown[], removed: readonly unknown[]): Operation {
  if (removed.length > 0 && added.length === 0) return { operation: 'DELETE' }
  return { operation: 'WRITE', mode: removed.length > 0 ? 'Overwrite' : 'Append' }
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
