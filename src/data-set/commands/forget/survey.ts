import {
  type Int64,
  type NamedPipeline,
  nameQuery,
  type Pipeline,
  parseWindow,
  type Query,
  type Store,
  type Window,
} from '../../../core/index.ts'
import { importedAt, takeRows } from '../../../load/index.ts'
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
  splitPath,
} from '../../../state/index.ts'
import type { ChangeOptions } from '../../options.ts'
import { BATCH_ROWS, readShard } from '../../read-shard.ts'
import { changedShard, type Located, valuesOf } from '../../rewriting.ts'
import { stopped, UNCHANGED } from '../../settle/settle.ts'
import type { People } from './people.ts'
import { itemsOfPeople, lostInLog, type OtherItems } from './rejected-items.ts'

export type ShardOfPeople = Located & { readonly removed: RemovedRows }

/** An open shard, and what is left of its batches in the log. */
export type OpenShardOfPeople = {
  readonly shard: FoldedShard
  readonly removed: RemovedRows
  readonly importedAt: Span | null
  readonly left: readonly { readonly batch: number; readonly rows: number; readonly bytes: Uint8Array }[]
}

export type Survey = {
  readonly shards: readonly ShardOfPeople[]
  readonly open: readonly OpenShardOfPeople[]
  readonly rows: number
  readonly quarantined: number
  /** What is left of the quarantine of partitions that have items of theirs, committed or not. */
  readonly items: readonly OtherItems[]
  readonly queries: ReadonlySet<string>
}

export async function survey(
  store: Store,
  log: Pick<Journal, 'read'>,
  pipeline: NamedPipeline,
  state: CheckpointState,
  people: People,
  { stop, onShard }: Pick<ChangeOptions, 'stop' | 'onShard'>,
): Promise<Survey> {
  const shards: ShardOfPeople[] = []
  const sealed = [...state.shards].filter(({ rows }) => rows > 0)
  for (const [number, shard] of sealed.entries()) {
    if (stop.aborted) throw stopped(UNCHANGED)
    onShard?.(number + 1, sealed.length)
    const removed = new RemovedRows(shard.partitions, (key) => state.partitions.get(key))
    const found = { shard, path: shard.path, removed }
    await findRows(store, pipeline, found, people)
    if (removed.total > 0) shards.push(found)
  }
  const open = await openOf(log, pipeline, state, people)
  const items: OtherItems[] = []
  for await (const some of itemsOfPeople(store, log, state, people)) items.push(some)
  const quarantined = items.reduce((sum, { removed }) => sum + removed, 0)
  const counts = [...shards, ...open].map((each) => each.removed)
  const rows = counts.reduce((sum, { total }) => sum + total, 0)
  const queries = new Set(counts.flatMap(({ counts }) => [...counts.keys()].map((key) => splitPath(key)[0])))
  return { shards, open, rows, quarantined, items, queries }
}

async function findRows(
  store: Store,
  pipeline: NamedPipeline,
  { shard, path, removed }: ShardOfPeople,
  people: People,
): Promise<void> {
  const columns = countedColumns(pipeline)
  await readShard(store, { path, bytes: shard.bytes }, async (reader) => {
    const { readBatches } = await import('../../../load/inspect/index.ts')
    let rows = 0
    for await (const batch of readBatches(reader, pipeline.load.format, columns, BATCH_ROWS)) {
      rows += batch.rows
      countRows(batch, people, removed)
    }
    if (rows !== shard.rows) throw changedShard(path)
  })
}

async function openOf(
  log: Pick<Journal, 'read'>,
  pipeline: NamedPipeline,
  state: CheckpointState,
  people: People,
): Promise<readonly OpenShardOfPeople[]> {
  const open: OpenShardOfPeople[] = []
  for (const shard of state.openShards.values()) {
    const removed = new RemovedRows(shard.partitions, (key) => presentOf(state, key))
    const left: OpenShardOfPeople['left'][number][] = []
    let { importedAt: span } = shard
    for (const [batch, { rows, at }] of shard.batches.entries()) {
      const recordBatch = decodeRecordBatch((await log.read(at)) ?? lostInLog('Rows'))
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

/** Where query and time do not tell a row's partition, another of its shard is counted: sums stay exact. */
class RemovedRows {
  readonly counts = new Map<string, number>()
  readonly #partitions: readonly {
    readonly key: string
    readonly query: string
    readonly window: Window | null
  }[]
  readonly #foldedOf: (key: string) => FoldedPartition | undefined

  constructor(partitions: Iterable<string>, foldedOf: (key: string) => FoldedPartition | undefined) {
    this.#partitions = [...partitions].map((key) => {
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
