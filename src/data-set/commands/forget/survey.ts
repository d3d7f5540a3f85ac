import {
  type Int64,
  type NamedPipeline,
  type Pipeline,
  parseWindow,
  type Query,
  type Store,
  type Window,
} from '../../../core/index.ts'
import { sealedPath } from '../../../load/index.ts'
import { nameQuery } from '../../../pipeline/index.ts'
import {
  type ColumnSpec,
  columnsOf,
  decodeRecordBatch,
  type RowBatch,
  rowBatchOf,
} from '../../../rows/index.ts'
import {
  type CheckpointState,
  type FoldedShard,
  type Journal,
  presentOf,
  type SealedShard,
  splitPath,
} from '../../../state/index.ts'
import type { ChangeOptions } from '../../hold.ts'
import { readShard } from '../../read-shard.ts'
import { BATCH_ROWS, changedShard, type Located, valuesOf } from '../../rewriting.ts'
import { stopped, UNCHANGED } from '../../settle/settle.ts'
import type { People } from './people.ts'
import { itemsOfPeople, type OtherItems } from './rejected-items.ts'

export type ShardOfPeople = Located & {
  readonly removed: RemovedRows
  /** Whether it holds what is exported of partitions, while they are exported again. */
  readonly isFormer: boolean
}

export type OpenShardOfPeople = { readonly shard: FoldedShard; readonly removed: RemovedRows }

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
  const again = [...state.redo.sealed.values()]
  let number = 0
  const find = async (shard: SealedShard, isAgain: boolean): Promise<void> => {
    if (stop.aborted) throw stopped(UNCHANGED)
    onShard?.(++number, sealed.length + again.length)
    const isFormer = state.redo.shards.has(shard.shard)
    const found = {
      shard,
      path: isAgain ? sealedPath(shard.shard, shard.sha256) : shard.path,
      removed: removedRows(state, shard.partitions, isFormer),
      isFormer,
    }
    await findRows(store, pipeline, found, people)
    if (found.removed.total > 0) shards.push(found)
  }
  for (const shard of sealed) await find(shard, false)
  for (const shard of again) await find(shard, true)
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

export async function openOf(
  log: Pick<Journal, 'read'>,
  pipeline: NamedPipeline,
  state: CheckpointState,
  people: People,
): Promise<readonly OpenShardOfPeople[]> {
  const open: OpenShardOfPeople[] = []
  for (const shard of state.openShards.values()) {
    const removed = removedRows(state, shard.partitions)
    for (const { at } of shard.batches) {
      const bytes = await log.read(at)
      if (bytes === null) continue
      const batch = rowBatchOf(decodeRecordBatch(bytes), countedColumns(pipeline))
      countRows(batch, people, removed)
    }
    if (removed.total > 0) open.push({ shard, removed })
  }
  return open
}

/** A counter of rows of some partitions. @param isFormer of what is exported, while it is exported again */
function removedRows(state: CheckpointState, partitions: Iterable<string>, isFormer = false): RemovedRows {
  return new RemovedRows(partitions, (key) => {
    const folded = isFormer ? state.partitions.get(key) : presentOf(state, key)
    return folded?.rows ?? 0
  })
}

/** What rows tell of their partition, by the columns below; null: the column is not exported. */
type RowOrigin = readonly [queryType: string | null, queryValue: string | null, importedAt: Int64 | null]

const ORIGIN_COLUMNS = ['query_type', 'query_value', 'imported_at']

export function countedColumns(pipeline: Pipeline): readonly ColumnSpec[] {
  return columnsOf(pipeline, ['identity_name', ...ORIGIN_COLUMNS])
}

/** Counts the rows that are of people. */
export function countRows(batch: RowBatch, people: People, removed: RemovedRows): void {
  const identity = valuesOf(batch, 'identity_name')
  const origin = ORIGIN_COLUMNS.map((name) => valuesOf(batch, name))
  for (let row = 0; row < batch.rows; row++)
    if (people.has(identity(row))) removed.add(origin.map((value) => value(row)) as unknown as RowOrigin)
}

/** Where query and time do not tell a row's partition, another of its shard is counted: sums stay exact. */
export class RemovedRows {
  readonly counts = new Map<string, number>()
  readonly #partitions: readonly {
    readonly key: string
    readonly query: string
    readonly window: Window | null
  }[]
  readonly #rowsOf: (key: string) => number

  constructor(partitions: Iterable<string>, rowsOf: (key: string) => number) {
    this.#partitions = [...partitions].map((key) => {
      const [query, window] = splitPath(key)
      return { key, query, window: parseWindow(window) }
    })
    this.#rowsOf = rowsOf
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
      if (this.#rowsOf(key) <= (this.counts.get(key) ?? 0)) continue
      const isItsTime =
        importedAt === null || window === null || (importedAt >= window.from && importedAt < window.until)
      const isItsType = queryType !== null && query.startsWith(`${queryType}.`)
      const fit = (isItsTime ? 4 : 0) + (query === name ? 2 : isItsType ? 1 : 0)
      if (fit > best.fit) best = { key, fit }
    }
    this.counts.set(best.key, (this.counts.get(best.key) ?? 0) + 1)
  }
}
