import { createHash } from 'node:crypto'
import {
  type Aggregates,
  AggregateTally,
  columnsOf,
  DATA_SET_LIMITS,
  ExportError,
  isExportError,
  type JournalEntry,
  type NamedPipeline,
  type OwnedStore,
  type Pipeline,
  partitionCounts,
  type Store,
  SUMMARY_PAGE_PATH,
} from '../../core/index.ts'
import { summaryPage } from '../../report/index.ts'
import {
  CHECKPOINT_PATH,
  type CheckpointState,
  checkMaskKey,
  findCheckpoint,
  MANIFEST_PATH,
  OpenLog,
  readCheckpoint,
  readManifest,
  SIGNATURE_PATH,
  SUCCESS_PATH,
} from '../../state/index.ts'
import type { Completeness } from '../completeness.ts'
import { isSummaryPage, readShard } from '../files.ts'
import {
  type HoldOptions,
  holdDataSet,
  namingLocations,
  nothingExported,
  openDataSet,
  withLocation,
} from '../open-data-set.ts'
import type { DataSetOptions } from '../options.ts'
import { planAsOfLastRun, retiredQueries } from '../plan-state.ts'
import { namePipeline } from '../queries.ts'
import { hostOf } from '../scope.ts'
import type { SummaryPageContext } from './gather-summary-page.ts'
import { type Known, type KnownShard, knownFromManifest, knownFromState } from './known.ts'

type PageOptions = Omit<SummaryPageContext, 'host' | 'signature'>

/** The number of rows that can be read without a noticeable delay. */
const FEW_ROWS = 100_000

/**
 * Writes the summary page of a data set. The journal has the aggregates of its rows. They are counted again if some rows
 * were invalidated and at most so many are left.
 * @param append writes the counts to the journal
 * @returns the contents
 * @throws ExportError `storage` when it cannot be written, or another file has its name
 */
async function writeSummaryPage(
  pipeline: NamedPipeline,
  store: OwnedStore,
  state: CheckpointState,
  { mostRows, ...options }: Omit<PageOptions, 'retired'> & { readonly mostRows: number },
  append: (entry: JournalEntry) => Promise<void>,
): Promise<Known> {
  let aggregates = state.aggregates()
  const { rows } = state.shards
  if (aggregates.rows !== rows && rows <= mostRows) {
    aggregates = await countAnew(pipeline, store, state.shards)
    await append({ kind: 'aggregates', ...aggregates, replaces: true })
  }
  const retired = retiredQueries(pipeline, state).length
  const known = await knownOf(pipeline, store, state, aggregates)
  await writePage(pipeline, store, known, { ...options, retired }, append)
  return known
}

async function knownOf(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
  aggregates: Aggregates,
): Promise<Known> {
  const isMarked = (await store.size(SUCCESS_PATH)) !== null
  return knownFromState(pipeline, state, aggregates, planAsOfLastRun(pipeline, state), isMarked)
}

/** The page as of the last run, made of the checkpoint alone: the file may have been changed since. Writes nothing. */
export async function summaryPageAnew(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
): Promise<Uint8Array> {
  const run = state.runs.at(-1)
  const nowMs = Date.parse(run?.finished_at ?? run?.started_at ?? state.header.created_at)
  const known = await knownOf(pipeline, store, state, state.aggregates())
  const retired = retiredQueries(pipeline, state).length
  const options = { nowMs, version: run?.version ?? '', retired }
  return Buffer.from((await pageOf(pipeline, store, known, options)).page)
}

/**
 * The same after everything else is on disk: an error is only logged.
 * @throws ExportError `locked` when another run has taken the pipeline over
 */
export async function tryToWriteSummaryPage(
  pipeline: NamedPipeline,
  store: OwnedStore,
  state: CheckpointState,
  { clock, version, stop, onLog }: Pick<DataSetOptions, 'clock' | 'version' | 'stop' | 'onLog'>,
  append: (entry: JournalEntry) => Promise<void>,
): Promise<void> {
  try {
    // A process that was stopped is about to be killed: no rows are counted again.
    const options = { nowMs: clock.now(), version, mostRows: stop.aborted ? 0 : FEW_ROWS }
    await writeSummaryPage(pipeline, store, state, options, append)
  } catch (error) {
    if (!isExportError(error) || isExportError(error, 'locked')) throw error
    onLog('warn', `the summary page could not be written: ${withLocation(pipeline, error).message}`)
  }
}

/** @throws ExportError as {@link writeSummaryPage} */
async function writePage(
  pipeline: NamedPipeline,
  store: OwnedStore,
  known: Known,
  options: PageOptions,
  append: (entry: JournalEntry) => Promise<void>,
): Promise<void> {
  if ((await isSummaryPage(store)) === false) throw notOurs()
  const { page, rows } = await pageOf(pipeline, store, known, options)
  // First: a later page must not give away what was added to a number that somebody has seen.
  if (rows !== null && rows !== known.reported) await append({ kind: 'reported', rows })
  await store.replace(SUMMARY_PAGE_PATH, [page])
}

async function pageOf(
  pipeline: NamedPipeline,
  store: Store,
  known: Known,
  options: PageOptions,
): Promise<{ readonly page: string; readonly rows: number | null }> {
  const { gatherSummaryPage } = await import('./gather-summary-page.ts')
  // A command that sends nothing need not know the service; the manifest does.
  const host = hostOf(pipeline.service) ?? (await readManifest(store))?.scope.service ?? null
  const data = gatherSummaryPage(pipeline, known, { ...options, host, signature: await signatureOf(store) })
  return { page: summaryPage(data), rows: data.rows.rows }
}

/** The digest of the manifest, and whether it is signed. */
async function signatureOf(store: Store): Promise<SummaryPageContext['signature']> {
  const size = await store.size(MANIFEST_PATH)
  if (size === null) return { manifest: null, signed: false }
  const hash = createHash('sha256')
  for await (const chunk of store.stream(MANIFEST_PATH)) hash.update(chunk)
  return { manifest: hash.digest('hex'), signed: (await store.size(SIGNATURE_PATH)) !== null }
}

function notOurs(): ExportError {
  return new ExportError({
    kind: 'storage',
    what: 'The file is no summary page of spillway, so it is not overwritten',
    where: SUMMARY_PAGE_PATH,
    next: 'Move it away; `spillway summary` writes the page then.',
  })
}

/**
 * Computes the aggregates of shards by reading their rows.
 * @throws ExportError `damaged` or `storage` when one cannot be read
 */
async function countAnew(
  pipeline: Pipeline,
  store: Store,
  shards: Iterable<KnownShard>,
): Promise<Aggregates> {
  // Loaded here, so that other commands start faster.
  const { readAggregates } = await import('../../load/inspect/index.ts')
  const columns = columnsOf(pipeline)
  const tally = new AggregateTally(DATA_SET_LIMITS)
  for (const shard of shards) {
    await readShard(store, shard, (reader) => readAggregates(reader, pipeline.load.format, columns, tally))
  }
  return tally.aggregates()
}

export type SummarizedDataSet = Completeness & { readonly rows: number; readonly shards: number }

export type SummarizeOptions = HoldOptions & {
  /** Spillway's own. */
  readonly version: string
  /** For queries that are named by digests: under another key they have other names. */
  readonly maskKey: Uint8Array | null
}

/**
 * Writes the summary page of a data set, after counting the rows whose aggregates the journal lacks. For a data set that
 * was moved without its state, it uses manifest and shards.
 * @throws ExportError `locked` during a run, which writes the page at its end
 * @throws ExportError `config` when nothing was exported yet
 */
export async function summarizeDataSet(
  given: Pipeline,
  options: SummarizeOptions,
): Promise<SummarizedDataSet> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    const data = openDataSet(pipeline)
    // Before the lock, which would create the folder.
    const found = await Promise.all([CHECKPOINT_PATH, MANIFEST_PATH].map((path) => data.size(path)))
    if (found.every((size) => size === null)) throw nothingExported(pipeline)
    return holdDataSet(pipeline, options, ({ store }) => summarize(pipeline, store, options))
  })
}

async function summarize(
  pipeline: NamedPipeline,
  store: OwnedStore,
  { clock, version, maskKey }: SummarizeOptions,
): Promise<SummarizedDataSet> {
  const context = { nowMs: clock.now(), version }
  const found = await readCheckpoint(store)
  if (found === null) {
    const manifest = await readManifest(store)
    if (manifest === null) throw nothingExported(pipeline)
    const aggregates = await countAnew(pipeline, store, manifest.shards)
    const retired = manifest.retired.length
    const isMarked = (await store.size(SUCCESS_PATH)) !== null
    const known = knownFromManifest(pipeline, manifest, aggregates, isMarked)
    await writePage(pipeline, store, known, { ...context, retired }, async () => {})
    const { rows, shards } = manifest.totals
    return { complete: isMarked, partitions: null, redo: 0, left_out: known.leftOut, rows, shards }
  }
  checkMaskKey(found.header, maskKey, pipeline)
  const append = async (entry: JournalEntry): Promise<void> => {
    const checkpoint = new OpenLog(store, (await findCheckpoint(store))!)
    try {
      await checkpoint.append([entry])
    } finally {
      await checkpoint.close()
    }
  }
  const options = { ...context, mostRows: Number.POSITIVE_INFINITY }
  const { complete, progress, leftOut } = await writeSummaryPage(pipeline, store, found, options, append)
  const partitions = progress === null ? null : partitionCounts(progress.total, progress)
  const { shards, redo } = found
  const counts = { rows: shards.rows, shards: shards.length }
  return { complete, partitions, redo: redo.partitions, left_out: leftOut, ...counts }
}
