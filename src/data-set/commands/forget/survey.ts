import {
  ExportError,
  type Int64,
  nameQuery,
  type Pipeline,
  parseWindow,
  type Query,
  type Store,
} from '../../../core/index.ts'
import { importedAt, QUARANTINE_FOLDER, quarantinePath, takeRows } from '../../../load/index.ts'
import {
  type ColumnSpec,
  columnsOf,
  decodeRecordBatch,
  encodeRecordBatch,
  type RowBatch,
  rowBatchOf,
  type Span,
  spanOf,
  type Times,
} from '../../../rows/index.ts'
import {
  type CheckpointState,
  type FoldedPartition,
  type FoldedShard,
  type Journal,
  presentOf,
  type SealedShard,
  splitPath,
} from '../../../state/index.ts'
import type { ChangeOptions } from '../../options.ts'
import { shardBatches } from '../../read-shard.ts'
import { changedShard, valuesOf } from '../../rewriting.ts'
import { stopped, UNCHANGED } from '../../settle/settle.ts'
import type { ChangedDataSet } from '../../writable-data-set.ts'
import type { People } from './people.ts'

/** What a data set has of people. */
export type Survey = {
  readonly shards: readonly ShardOfPeople[]
  readonly open: readonly OpenShardOfPeople[]
  /** What is left of the quarantine of partitions that have items of theirs, committed or not. */
  readonly items: readonly OtherItems[]
}

export type ShardOfPeople = { readonly shard: SealedShard; readonly removed: RemovedRows }

/** An open shard, and what is left of its batches in the log. */
type OpenShardOfPeople = {
  readonly shard: FoldedShard
  readonly removed: RemovedRows
  readonly importedAt: Span | null
  readonly left: readonly { readonly batch: number; readonly rows: number; readonly bytes: Uint8Array }[]
}

type OtherItems = {
  readonly partition: string
  /** The lines that are left of committed items. */
  readonly lines: Buffer
  readonly removed: number
  /** Whether they are of what is exported of the partition again. */
  readonly isRedo: boolean
}

export async function survey(
  { store, pipeline, read }: ChangedDataSet,
  state: CheckpointState,
  people: People,
  { stop, onShard }: Pick<ChangeOptions, 'stop' | 'onShard'>,
): Promise<Survey> {
  const shards: ShardOfPeople[] = []
  const sealed = [...state.shards].filter(({ rows }) => rows > 0)
  for (const [number, shard] of sealed.entries()) {
    if (stop.aborted) throw stopped(UNCHANGED)
    onShard?.(number + 1, sealed.length)
    const removed = await rowsOfPeople(store, pipeline, state, shard, people)
    if (removed.total > 0) shards.push({ shard, removed })
  }
  return {
    shards,
    open: await openOf(read, pipeline, state, people),
    items: await itemsOf(store, read, state, people),
  }
}

async function rowsOfPeople(
  store: Store,
  pipeline: Pipeline,
  { partitions }: CheckpointState,
  shard: SealedShard,
  people: People,
): Promise<RemovedRows> {
  const removed = new RemovedRows(shard.partitions, (key) => partitions.get(key))
  let rows = 0
  for await (const batch of shardBatches(store, shard, pipeline.load.format, countedColumns(pipeline))) {
    rows += batch.rows
    countRows(batch, people, removed)
  }
  if (rows !== shard.rows) throw changedShard(shard.path)
  return removed
}

async function openOf(
  read: Journal['read'],
  pipeline: Pipeline,
  state: CheckpointState,
  people: People,
): Promise<readonly OpenShardOfPeople[]> {
  const open: OpenShardOfPeople[] = []
  for (const shard of state.openShards.values()) {
    const removed = new RemovedRows(shard.partitions, (key) => presentOf(state, key))
    const left: OpenShardOfPeople['left'][number][] = []
    let { importedAt: span } = shard
    for (const [batch, { rows, at }] of shard.batches.entries()) {
      const recordBatch = decodeRecordBatch((await read(at)) ?? lostInLog('Rows'))
      const page = rowBatchOf(recordBatch, countedColumns(pipeline))
      const stay = countRows(page, people, removed)
      const times = timesOf(page)
      if (batch === 0 && times !== null) span = null
      span = spanOf(span, importedAt({ page: { times }, rows: stay }, 0, stay.length))
      if (stay.length < rows)
        left.push({ batch, rows: stay.length, bytes: encodeRecordBatch(takeRows(recordBatch, stay)) })
    }
    if (left.length > 0) open.push({ shard, removed, importedAt: span, left })
  }
  return open
}

/** null: the column is not exported. */
function timesOf({ columns }: RowBatch): Times | null {
  const column = columns.find(({ name }) => name === 'imported_at')
  return column?.type === 'timestamp' ? (column.values as Times) : null
}

/** What rows tell of their partition, by the columns below; null: the column is not exported. */
type RowOrigin = readonly [queryType: string | null, queryValue: string | null, importedAt: Int64 | null]

const ORIGIN_COLUMNS = ['query_type', 'query_value', 'imported_at']

function countedColumns(pipeline: Pipeline): readonly ColumnSpec[] {
  return columnsOf(pipeline, ['identity_name', ...ORIGIN_COLUMNS])
}

/** Counts the rows that are of people. @returns the others */
function countRows(batch: RowBatch, people: People, removed: RemovedRows): Uint32Array {
  const identity = valuesOf(batch, 'identity_name')
  const origin = ORIGIN_COLUMNS.map((name) => valuesOf(batch, name))
  const others: number[] = []
  for (let row = 0; row < batch.rows; row++) {
    if (!people.has(identity(row))) others.push(row)
    else removed.add(origin.map((value) => value(row)) as unknown as RowOrigin)
  }
  return Uint32Array.from(others)
}

/** By partition. Where query and time do not tell that of a row, another of its shard is counted: sums stay exact. */
class RemovedRows {
  readonly counts = new Map<string, number>()
  readonly #partitions
  readonly #foldedOf: (key: string) => FoldedPartition | undefined

  constructor(partitions: Iterable<string>, foldedOf: (key: string) => FoldedPartition | undefined) {
    this.#partitions = Array.from(partitions, (key) => {
      const [query, window] = splitPath(key)
      return { key, query, window: parseWindow(window) }
    })
    this.#foldedOf = foldedOf
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, rows) => sum + rows, 0)
  }

  add([queryType, queryValue, importedAt]: RowOrigin): void {
    const name =
      queryType === null || queryValue === null
        ? null
        : nameQuery({ type: queryType } as Query, queryValue).name
    let best = { key: this.#partitions[0]!.key, fit: -1 }
    for (const { key, query, window } of this.#partitions) {
      if ((this.#foldedOf(key)?.rows ?? 0) <= (this.counts.get(key) ?? 0)) continue
      const isItsTime =
        importedAt === null || window === null || (importedAt >= window.from && importedAt < window.until)
      const isItsType = queryType !== null && query.startsWith(`${queryType}.`)
      const fit = (isItsTime ? 4 : 0) + (query === name ? 2 : isItsType ? 1 : 0)
      if (fit > best.fit) best = { key, fit }
    }
    this.counts.set(best.key, (this.counts.get(best.key) ?? 0) + 1)
  }
}

async function itemsOf(
  store: Store,
  read: Journal['read'],
  state: CheckpointState,
  people: People,
): Promise<readonly OtherItems[]> {
  const items: OtherItems[] = []
  const names = new Set(await store.list(QUARANTINE_FOLDER))
  for (const [partition, { quarantineEnd }] of [...state.partitions]) {
    const path = quarantinePath(partition)
    const hasFile = quarantineEnd > 0 && names.has(splitPath(path)[1])
    const file = hasFile ? await store.read(path, 0, quarantineEnd) : null
    for (const isRedo of [false, true]) {
      const committed = isRedo || file === null ? [] : [file]
      for (const ref of (isRedo ? state.redo : state).rejected.get(partition) ?? [])
        committed.push((await read(ref)) ?? lostInLog('Rejected items'))
      const { lines, removed } = others(Buffer.concat(committed), people, path)
      if (removed > 0) items.push({ partition, lines, removed, isRedo })
    }
  }
  return items
}

function others(bytes: Buffer, people: People, path: string): { lines: Buffer; removed: number } {
  const lines = bytes.toString().split('\n').filter(Boolean)
  const left = lines.filter((line) => !people.has(parsed(line, path).item?.identity_name))
  const text = left.map((line) => `${line}\n`).join('')
  return { lines: Buffer.from(text), removed: lines.length - left.length }
}

function parsed(line: string, path: string): { readonly item?: { readonly identity_name?: unknown } | null } {
  try {
    return JSON.parse(line)
  } catch {
    throw new ExportError({
      kind: 'damaged',
      what: 'The quarantine file has a line that cannot be read',
      where: path,
      next: 'Restore the file, or move it out of the data set, then run it again.',
    })
  }
}

function lostInLog(what: 'Rows' | 'Rejected items'): never {
  throw new ExportError({
    kind: 'damaged',
    what: `${what} that wait in the log are lost or changed`,
    where: '_state/log',
    next: 'Run the pipeline first: it exports the partitions concerned anew. Then `forget` again.',
  })
}
