import {
  type ColumnSpec,
  type ColumnStatistics,
  type ColumnType,
  type OwnedStore,
  sideBySide,
  type TableSettings,
} from '../../core/index.ts'
import {
  committedByOthers,
  DELTA_FOLDER,
  foreignTable,
  type OpenTable,
  type TableContent,
  type TableShard,
  type TableState,
  type TableUpdate,
  untilCommitted,
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
  writeCommit,
} from './delta-log.ts'

// Readers replay the whole log, and so does every update.
const MANY_COMMITS = 1000

/**
 * A data set as a Delta table that every reader knows (reader version 1, writer version 2). Its log has no checkpoints:
 * these are Parquet files, which patterns for shards would find.
 * Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
 */
export const deltaTable: OpenTable = {
  async read(store, settings) {
    const log = await readLog(store)
    return log === null ? null : stateOf(log, settings)
  },
  async update(store, settings, content, update) {
    // Its versions begin again, which shortens it.
    if (update.rebuild) await removeLog(store)
    const log = await untilCommitted(DELTA_FOLDER, () => commit(store, content, update))
    if (log.version + 1 >= MANY_COMMITS) update.warn(tooLong(log.version))
    return stateOf(log, settings)
  },
  async requireOwn(store) {
    if ((await isOwnLog(store)) === false) throw foreignTable(DELTA_FOLDER)
  },
  async remove(store) {
    if ((await isOwnLog(store)) === true) await removeLog(store)
  },
}

function stateOf({ version, shards }: DeltaState, { root }: TableSettings): TableState {
  return { format: 'delta', location: root, snapshot: version, shards }
}

function tooLong(version: number): string {
  return `the log of the Delta table has ${version + 1} commits, and readers read each; \`spillway tables --rebuild\` begins it anew with one`
}

/** @returns null: another commit has the next version */
async function commit(
  store: OwnedStore,
  content: TableContent,
  update: TableUpdate,
): Promise<DeltaState | null> {
  const before = await readLog(store)
  if (before !== null && before.id !== content.dataSetId) throw committedByOthers(commitPath(0))
  const wanted = new Map(content.shards.map((shard) => [shard.path, shard]))
  const known = before?.shards ?? new Map<string, TableShard>()
  const added = content.shards.filter(({ path, sha256 }) => known.get(path)?.sha256 !== sha256)
  const removed = [...known.keys()].filter((path) => !wanted.has(path))
  if (before !== null && added.length + removed.length === 0) return before
  const version = (before?.version ?? -1) + 1
  const schemaString = JSON.stringify(schemaOf(content.columns))
  const adds: string[] = []
  await sideBySide(added.entries(), async ([i, shard]) => {
    adds[i] = addLine(shard, await update.statisticsOf(shard), update.nowMs)
  })
  const lines = [
    line({ commitInfo: commitInfo(content, removed.length > 0, update) }),
    ...(before === null ? [line({ protocol: { minReaderVersion: 1, minWriterVersion: 2 } })] : []),
    ...(before?.schemaString === schemaString
      ? []
      : [line({ metaData: metaData(content, schemaString, update) })]),
    ...removed.map((path) =>
      line({ remove: { path: encoded(path), deletionTimestamp: update.nowMs, dataChange: true } }),
    ),
    ...adds,
  ]
  if (!(await writeCommit(store, version, lines))) return null
  return { version, id: content.dataSetId, schemaString, shards: wanted }
}

function line(action: unknown): string {
  return `${JSON.stringify(action)}\n`
}

function commitInfo(
  { dataSetId, manifestSha256, runId }: TableContent,
  removes: boolean,
  { nowMs, rebuild }: TableUpdate,
) {
  return {
    // First: it marks a commit of Spillway.
    engineInfo: ENGINE,
    timestamp: nowMs,
    operation: rebuild ? 'REBUILD' : 'WRITE',
    operationParameters: {
      mode: removes ? 'Overwrite' : 'Append',
      data_set_id: dataSetId,
      manifest_sha256: manifestSha256,
      ...(runId === null ? {} : { run_id: runId }),
    },
  }
}

function metaData({ dataSetId }: TableContent, schemaString: string, { nowMs }: TableUpdate) {
  return {
    id: dataSetId,
    format: { provider: 'parquet', options: {} },
    schemaString,
    partitionColumns: [],
    configuration: {},
    createdTime: nowMs,
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

function addLine(shard: TableShard, statistics: readonly ColumnStatistics[], nowMs: number): string {
  return line({
    add: {
      path: encoded(shard.path),
      partitionValues: {},
      size: shard.bytes,
      modificationTime: nowMs,
      dataChange: true,
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
    ['minValues', members(bounded.map((each) => [each.name, boundJson(each, each.bounds.min, 'min')]))],
    ['maxValues', members(bounded.map((each) => [each.name, boundJson(each, each.bounds.max, 'max')]))],
    ['nullCount', members(statistics.map(({ name, nulls }) => [name, String(nulls)]))],
  ])
}

/** Times have milliseconds in readers, so bounds of theirs are rounded outwards. */
function boundJson(
  { type }: Pick<ColumnStatistics, 'type'>,
  value: bigint | string,
  end: 'min' | 'max',
): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (type !== 'timestamp') return String(value)
  const down = value - (((value % 1000n) + 1000n) % 1000n)
  const micros = end === 'min' || down === value ? down : down + 1000n
  return JSON.stringify(new Date(Number(micros / 1000n)).toISOString())
}
