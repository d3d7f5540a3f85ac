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
    if (version + 1 >= MANY_COMMITS)
      update.warn(
        `the log of the Delta table has ${version + 1} commits, and readers read each; \`spillway tables --rebuild\` begins it anew with one`,
      )
    // The log stays whole.
    return { state: stateOf(log, settings), removeExpired: async () => {} }
  },
  isOwn: isOwnLog,
  remove: removeLog,
}

function stateOf({ mark, shards }: DeltaState, { root }: TableSettings): TableState {
  return { format: 'delta', location: root, snapshot: mark.version, shards, metadataLocation: null }
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
  const metaData = {
    id: table.id,
    format: { provider: 'parquet', options: {} },
    schemaString: schema,
    partitionColumns: [],
    configuration: { 'spillway.data_set_id': settings.dataSetId },
    createdTime: table.begunMs,
  }
  const isDeletion = removed.length > 0 && added.length === 0
  const commitInfo = {
    // First, in this order: they mark a commit of the data set.
    engineInfo: ENGINE,
    operationParameters: {
      data_set_id: settings.dataSetId,
      ...(isDeletion ? {} : { mode: removed.length > 0 ? 'Overwrite' : 'Append' }),
      manifest_sha256: content.manifestSha256,
      ...(content.runId === null ? {} : { run_id: content.runId }),
    },
    operation: isDeletion ? 'DELETE' : 'WRITE',
    timestamp: update.nowMs,
  }
  const lines = [
    line({ commitInfo }),
    ...(before === null ? [line({ protocol: { minReaderVersion: 1, minWriterVersion: 2 } })] : []),
    ...(before?.schema === schema ? [] : [line({ metaData })]),
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
  { path, rows, bytes, sha256 }: TableShard,
  statistics: readonly ColumnStatistics[],
  nowMs: number,
  dataChange: boolean,
): string {
  const bounded = withBounds(statistics)
  const boundsOf = (end: 'min' | 'max') =>
    members(bounded.map(({ name, type, bounds }) => [name, boundJson(type, bounds[end], end)]))
  const nulls = members(statistics.map(({ name, nulls }) => [name, String(nulls)]))
  const stats = members([
    ['numRecords', String(rows)],
    ['minValues', boundsOf('min')],
    ['maxValues', boundsOf('max')],
    ['nullCount', nulls],
  ])
  return line({
    add: {
      path: encoded(path),
      partitionValues: {},
      size: bytes,
      modificationTime: nowMs,
      dataChange,
      stats,
      tags: { [SHA256_TAG]: sha256 },
    },
  })
}

/** JSON by hand, since numbers may be larger than JavaScript's. */
function members(entries: readonly (readonly [name: string, json: string | null])[]): string {
  const texts = entries.flatMap(([name, json]) => (json === null ? [] : `${JSON.stringify(name)}:${json}`))
  return `{${texts.join(',')}}`
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
