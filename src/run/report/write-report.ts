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
  REPORT_PATH,
  type Store,
} from '../../core/index.ts'
import { renderReport } from '../../report/index.ts'
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
import type { Completeness } from '../data-set/completeness.ts'
import { isReport, shardReader } from '../data-set/files.ts'
import {
  type HoldOptions,
  holdDataSet,
  namingLocations,
  nothingExported,
  openDataSet,
  withLocation,
} from '../data-set/open-data-set.ts'
import { planAsOfLastRun, retiredQueries } from '../data-set/plan-state.ts'
import { hostOf } from '../data-set/scope.ts'
import type { RunOptions } from '../options.ts'
import { namePipeline } from '../queries.ts'
import type { ReportContext } from './gather.ts'
import { type Known, type KnownShard, knownFromManifest, knownFromState } from './known.ts'

type ReportOptions = {
  readonly nowMs: number
  /** Spillway's own. */
  readonly version: string
  /** The process is about to be killed: slow parts are left out. */
  readonly hurry: boolean
}

/** The number of rows that can be read without a noticeable delay. */
const FEW_ROWS = 100_000

/**
 * Writes the report of a data set at the end of a run. The journal has the aggregates of its rows. They are counted
 * again only if some rows were invalidated and few are left.
 * @param record appends the counts to the journal
 * @returns the contents
 * @throws ExportError `storage` when it cannot be written, or another file has its name
 */
async function writeReport(
  pipeline: NamedPipeline,
  store: OwnedStore,
  state: CheckpointState,
  { mostRows = FEW_ROWS, ...options }: ReportOptions & { readonly mostRows?: number },
  record: (entry: JournalEntry) => Promise<void>,
): Promise<Known> {
  const aggregates = await aggregatesOf(pipeline, store, state, options.hurry ? 0 : mostRows, record)
  const retired = retiredQueries(pipeline, state).length
  const known = await knownOf(pipeline, store, state, aggregates)
  await writePage(pipeline, store, known, { ...options, retired }, record)
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

/**
 * The page of the report as of the last run, made of the checkpoint alone: the file may have been changed since, and
 * even its charts are not taken from it. Writes nothing.
 */
export async function reportAnew(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
): Promise<Uint8Array> {
  const run = state.runs.at(-1)
  const nowMs = Date.parse(run?.finished_at ?? run?.started_at ?? state.header.created_at)
  const known = await knownOf(pipeline, store, state, state.aggregates())
  const retired = retiredQueries(pipeline, state).length
  const options = { nowMs, version: run?.version ?? '', hurry: false, retired }
  return Buffer.from((await pageOf(pipeline, store, known, options, null)).page)
}

/** The same after everything else is on disk: an error is only logged. */
export async function tryToReport(
  pipeline: NamedPipeline,
  store: OwnedStore,
  state: CheckpointState,
  { clock, version, stop, onLog }: Pick<RunOptions, 'clock' | 'version' | 'stop' | 'onLog'>,
  record: (entry: JournalEntry) => Promise<void>,
): Promise<void> {
  try {
    const options = { nowMs: clock.now(), version, hurry: stop.aborted }
    await writeReport(pipeline, store, state, options, record)
  } catch (error) {
    if (!isExportError(error)) throw error
    onLog('warn', `the report could not be written: ${withLocation(pipeline, error).message}`)
  }
}

/** Aggregates of all rows. They are counted again if the journal lacks them and there are few enough rows to read. */
async function aggregatesOf(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
  mostRows: number,
  record: (entry: JournalEntry) => Promise<void>,
): Promise<Aggregates> {
  const known = state.aggregates()
  const { rows } = state.shards
  if (known.rows === rows || rows > mostRows) return known
  const aggregates = await countAnew(pipeline, store, state.shards)
  await record({ kind: 'aggregates', ...aggregates, replaces: true })
  return aggregates
}

/** @throws ExportError as {@link writeReport} */
async function writePage(
  pipeline: NamedPipeline,
  store: OwnedStore,
  known: Known,
  options: ReportOptions & { readonly retired: number },
  record: (entry: JournalEntry) => Promise<void>,
): Promise<void> {
  if ((await isReport(store)) === false) throw notOurs()
  const { page, rows } = await pageOf(pipeline, store, known, options, await earlierPage(store))
  // First: a later report must not give away what was added to a number that somebody has seen.
  if (rows !== null && rows !== known.reported) await record({ kind: 'reported', rows })
  await store.replace(REPORT_PATH, [page])
}

async function pageOf(
  pipeline: NamedPipeline,
  store: Store,
  known: Known,
  options: ReportOptions & { readonly retired: number },
  earlier: string | null,
): Promise<{ readonly page: string; readonly rows: number | null }> {
  const { gatherReport } = await import('./gather.ts')
  // A command that sends nothing need not know the service; the manifest does.
  const host = hostOf(pipeline.service) ?? (await readManifest(store))?.scope?.service ?? null
  const data = gatherReport(pipeline, known, { ...options, host, seal: await sealOf(store) })
  return { page: await renderReport(data, options.hurry, earlier), rows: data.rows.rows }
}

/** Far more than any report has. */
const MAX_PAGE_BYTES = 10_000_000

/** The present report, whose charts may still be valid. */
async function earlierPage(store: Store): Promise<string | null> {
  const size = await store.size(REPORT_PATH)
  if (size === null || size > MAX_PAGE_BYTES) return null
  const bytes = await store.read(REPORT_PATH)
  return bytes === null ? null : Buffer.from(bytes).toString()
}

/** The digest of the manifest, and whether it is signed. */
async function sealOf(store: Store): Promise<ReportContext['seal']> {
  const size = await store.size(MANIFEST_PATH)
  if (size === null) return { manifest: null, signed: false }
  const hash = createHash('sha256')
  for await (const chunk of store.stream(MANIFEST_PATH)) hash.update(chunk)
  return { manifest: hash.digest('hex'), signed: (await store.size(SIGNATURE_PATH)) !== null }
}

function notOurs(): ExportError {
  return new ExportError({
    kind: 'storage',
    what: 'The file is no report of spillway, so it is not overwritten',
    where: REPORT_PATH,
    next: 'Move it away; `spillway summary` writes the report then.',
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
    await readAggregates(shardReader(store, shard), pipeline.load.format, columns, tally)
  }
  return tally.aggregates()
}

export type ReportedDataSet = Completeness & { readonly rows: number; readonly shards: number }

export type SummarizeOptions = Pick<ReportOptions, 'version'> &
  HoldOptions & {
    /** For queries that are named by digests: under another key they have other names. */
    readonly maskKey: Uint8Array | null
  }

/**
 * Writes the report of a data set, after counting the rows whose aggregates the journal lacks. For a data set that was
 * moved without its state, it uses manifest and shards.
 * @throws ExportError `locked` during a run, which writes the report at its end
 * @throws ExportError `config` when nothing was exported yet
 */
export async function summarizeDataSet(given: Pipeline, options: SummarizeOptions): Promise<ReportedDataSet> {
  const pipeline = namePipeline(given, options.maskKey)
  return namingLocations(pipeline, async () => {
    const data = openDataSet(pipeline)
    // Before the lock, which would create the folder.
    const found = await Promise.all([CHECKPOINT_PATH, MANIFEST_PATH].map((path) => data.size(path)))
    if (found.every((size) => size === null)) throw nothingExported(pipeline)
    return holdDataSet(pipeline, options, ({ store }) => reportOn(pipeline, store, options))
  })
}

async function reportOn(
  pipeline: NamedPipeline,
  store: OwnedStore,
  { clock, version, maskKey }: SummarizeOptions,
): Promise<ReportedDataSet> {
  const context = { nowMs: clock.now(), version, hurry: false }
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
  const record = async (entry: JournalEntry): Promise<void> => {
    const checkpoint = new OpenLog(store, (await findCheckpoint(store))!)
    try {
      await checkpoint.append([entry])
    } finally {
      await checkpoint.close()
    }
  }
  const options = { ...context, mostRows: Number.POSITIVE_INFINITY }
  const { complete, standing, leftOut } = await writeReport(pipeline, store, found, options, record)
  const partitions = standing === null ? null : partitionCounts(standing.total, standing)
  const { shards, redo } = found
  const counts = { rows: shards.rows, shards: shards.length }
  return { complete, partitions, redo: redo.partitions, left_out: leftOut, ...counts }
}
