import { pipeline as streamPipeline } from 'node:stream/promises'
import {
  type DecodedPage,
  type DecodePage,
  ExportError,
  int64FromJson,
  isExportError,
  type Partition,
  type Pipeline,
  type Position,
  SeenCursors,
  type Store,
} from '../core/index.ts'
import { type Ahead, type ExtractedPage, extractPages, type Service } from '../extract/index.ts'
import { appendQuarantine, cutQuarantine, folderOf, ownsFolder, type ShardSet } from '../load/index.ts'
import {
  type Checkpoint,
  type IdLog,
  newIdLog,
  openIdLog,
  type PageFacts,
  type PartitionRecord,
} from '../state/index.ts'
import { excessOf } from './quarantine-limit.ts'
import { withoutSecrets } from './without-secrets.ts'

/** What a page's line says besides where its rows stand. */
export type CommittedPage = Omit<PageFacts, 'shard' | 'log'>

export type PartitionDeps = {
  readonly pipeline: Pipeline
  /** What a secret query asks for; null for other queries. */
  readonly secret: string | null
  readonly service: Service
  readonly decode: DecodePage
  /** Called with each page whose rows are not needed any more. */
  readonly release: (page: DecodedPage) => void
  readonly store: Store
  readonly shards: ShardSet<CommittedPage>
  readonly checkpoint: Checkpoint
  /** Called after each commit, with the requests that the page took. */
  readonly onPage: (page: DecodedPage, requests: number) => void
  /** Awaited after each commit, before another page is asked for. */
  readonly beforeNext: () => Promise<void>
  /** Called before each request. */
  readonly onRequest: () => void
  /** For pages that are asked for before the one before them is committed. */
  readonly ahead: Ahead
  readonly warn: (message: string, fields: Readonly<Record<string, string | number>>) => void
}

/**
 * Exports one partition from wherever the checkpoint says it stands. When the service refuses the saved
 * cursor, or the ids of the last pages are lost, by which a row that comes again is known, the chain starts again after
 * the last committed row, where that can be done without repeating any, and without mixing the rows of two secrets.
 * @throws ExportError of the kinds that end a partition or the run
 */
export async function exportPartition(
  partition: Partition,
  queryValue: string,
  deps: PartitionDeps,
): Promise<void> {
  const { store } = deps
  const { key } = partition
  const record = deps.checkpoint.state.partitions.get(key)
  const excess = excessOf(partition, deps.pipeline.transform.maxQuarantined, record)
  if (excess !== null) throw excess
  await cutQuarantine(store, key, record?.quarantineEnd ?? 0)
  let ids = await openIdLog(store, key, record?.ids ?? null)
  if (ids === null) {
    await restart(partition, LOST_IDS, deps)
    ids = newIdLog(store, key)
  }
  try {
    try {
      await exportChain(partition, queryValue, ids, deps)
    } catch (error) {
      if (!isExportError(error, 'cursor')) throw error
      await restart(partition, REFUSED_CURSOR, deps, error)
      await exportChain(partition, queryValue, ids, deps)
    }
    await ids.remove()
  } finally {
    await ids.close()
  }
}

const REFUSED_CURSOR = 'The service refuses the saved cursor'
const LOST_IDS = 'The ids of the last pages are damaged or gone'

/** Has the chain start again after its last row. @throws ExportError `refused` when there is no such place */
async function restart(
  partition: Partition,
  why: string,
  deps: PartitionDeps,
  cause?: ExportError,
): Promise<void> {
  const record = deps.checkpoint.state.partitions.get(partition.key)
  if (cause !== undefined) requireSameSecret(partition, record, deps.pipeline, cause)
  const position = restartPosition(partition, record, why, cause)
  const since = position === null ? null : { at: position.at, ids: [...position.ids] }
  deps.warn(`${why.charAt(0).toLowerCase()}${why.slice(1)}; going on after the last committed row`, {
    partition: partition.key,
  })
  await deps.checkpoint.append([{ kind: 'restart', partition: partition.key, since }])
}

async function exportChain(
  partition: Partition,
  queryValue: string,
  ids: IdLog,
  deps: PartitionDeps,
): Promise<void> {
  const { extract } = deps.pipeline
  const record = deps.checkpoint.state.partitions.get(partition.key)
  const chain = {
    partition,
    queryValue,
    secret: deps.secret,
    include: extract.include,
    order: extract.order,
    pageSize: extract.pageSize,
    cursor: record?.next ?? null,
    since: record?.since ?? null,
    recent: ids.recent,
    page: record?.pages ?? 0,
    seen: new SeenCursors(record?.seen),
    onRequest: deps.onRequest,
    ahead: deps.ahead,
  }
  const decode = withoutSecrets(deps.decode, deps.release)
  await streamPipeline(extractPages(deps.service, chain, decode, deps.release), (pages) =>
    commitPages(pages, partition, ids, deps),
  )
}

/** Makes one page durable after the other: quarantine and ids, then rows, then the line that counts. */
async function commitPages(
  pages: AsyncIterable<ExtractedPage>,
  partition: Partition,
  ids: IdLog,
  deps: PartitionDeps,
): Promise<void> {
  const { extract, transform, load } = deps.pipeline
  const folder = folderOf(extract.resource, partition, load.partitionBy)
  const owned = ownsFolder(extract.resource, load.partitionBy)
  for await (const { page, requests } of pages) {
    const record = deps.checkpoint.state.partitions.get(partition.key)
    // After the last page there is none that could repeat its rows.
    const mark = page.next === null ? null : await ids.append(page.ids)
    const facts: CommittedPage = {
      partition: partition.key,
      next: page.next,
      rows: page.rows,
      requests,
      ...(page.importedAt === null ? {} : { imported_at: page.importedAt }),
      ...positionAfter(record, page, extract.order),
      ...(await quarantine(partition, page, record, deps)),
      ...(page.repeated === 0 ? {} : { repeated: page.repeated }),
      ...(mark === null ? {} : { ids: mark }),
      ...(Object.keys(page.unknownFields).length === 0 ? {} : { unknown_fields: page.unknownFields }),
    }
    // The page does not count: it is asked for again, in case the service has mended it or the limit was raised. Until
    // then its items are in the quarantine file, where they can be looked at.
    const excess = excessOf(partition, transform.maxQuarantined, record, page)
    if (excess !== null) {
      deps.release(page)
      throw excess
    }
    const rows =
      page.frame === null
        ? null
        : { partition: partition.key, frame: page.frame, rows: page.rows, importedAt: page.importedAt }
    await deps.shards.commit(folder, rows, facts, owned && page.next === null)
    deps.release(page)
    deps.onPage(page, requests)
    if (page.next !== null) await deps.beforeNext()
  }
}

async function quarantine(
  partition: Partition,
  page: DecodedPage,
  record: PartitionRecord | undefined,
  deps: PartitionDeps,
): Promise<Pick<PageFacts, 'quarantine'>> {
  if (page.quarantined.length === 0) return {}
  const end = await appendQuarantine(deps.store, partition.key, record?.quarantineEnd ?? 0, page.quarantined)
  return { quarantine: { end, items: page.quarantined.length } }
}

// Beyond this many rows with one and the same time the place to go on is not kept.
const MAX_POSITION_IDS = 1000

/**
 * Where the chain could start again after this page. It can only while everything so far came in order of
 * `imported_at`; once it did not, never again.
 */
function positionAfter(
  record: PartitionRecord | undefined,
  page: DecodedPage,
  order: 'asc' | 'desc',
): Pick<PageFacts, 'position'> {
  if (page.items === page.repeated || page.next === null) return {}
  const before = record?.position ?? null
  const begun = record !== undefined && !isEmpty(record)
  if (page.span === null || page.span.lastIds === null || (begun && before === null))
    return { position: null }
  const { first, last, lastIds } = page.span
  if (before === null) return { position: { at: last, ids: [...lastIds] } }
  const [start, end] = [int64FromJson(first), int64FromJson(before.at)]
  if (order === 'asc' ? start < end : start > end) return { position: null }
  const ids = last === before.at ? [...new Set([...before.ids, ...lastIds])] : [...lastIds]
  return { position: ids.length > MAX_POSITION_IDS ? null : { at: last, ids } }
}

function isEmpty(record: PartitionRecord): boolean {
  return record.rows === 0 && record.quarantined === 0
}

/**
 * A service refuses the cursor of another query; for a secret query that may be one whose variable has changed. Only
 * where secrets are masked by hmac has the checkpoint told already that it has not.
 */
function requireSameSecret(
  { key, query }: Partition,
  record: PartitionRecord | undefined,
  { transform }: Pipeline,
  cause: ExportError,
): void {
  if (query.type !== 'secret' || transform.secret === 'hmac') return
  if (record === undefined || isEmpty(record)) return
  throw new ExportError(
    'refused',
    `The service refuses the saved cursor, and nothing tells whether ${query.secretEnv} still holds the secret whose rows are exported`,
    key,
    `If ${query.secretEnv} was changed, restore it and run again; if it was not, the cursor has run out: export the query to another load.path, or start over with --fresh.`,
    { cause },
  )
}

/** @returns null: from the beginning, as nothing was exported yet */
function restartPosition(
  partition: Partition,
  record: PartitionRecord | undefined,
  why: string,
  cause?: ExportError,
): Position | null {
  if (record === undefined || isEmpty(record)) return null
  if (record.position !== null) return record.position
  throw new ExportError(
    'refused',
    `${why}, and the rows did not come in order of imported_at, so there is no safe place to go on`,
    partition.key,
    'Export this query to another load.path, or start over with --fresh.',
    cause === undefined ? {} : { cause },
  )
}
