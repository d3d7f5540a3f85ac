import {
  ExportError,
  isExportError,
  type OwnedStore,
  type Pipeline,
  type Store,
  SUMMARY_PAGE_PATH,
  SUMMARY_PAGE_START,
} from '../../core/index.ts'
import { MANIFEST_PATH, manifestDigest, parseManifest } from '../../state/index.ts'
import type { SummaryInput } from '../../summary/index.ts'
import { beginsWith } from '../clear-data-set.ts'
import { leftOutClauses, leftOutOfManifest } from '../completeness.ts'
import {
  type HoldOptions,
  holdDataSet,
  namingLocations,
  nothingExported,
  openDataSet,
  withLocation,
} from '../open-data-set.ts'
import type { DataSetOptions } from '../options.ts'
import { readSteadily } from '../read-manifest.ts'
import { isMarked } from '../success-mark.ts'

/** Loaded when a page is written: most commands write none. */
const pages = () => import('../../summary/index.ts')

/** Call it after everything else is on disk: it says whether there is `_SUCCESS`. All errors but `locked` are logged. */
export async function bringSummaryPage(
  pipeline: Pipeline,
  store: OwnedStore,
  { version, onLog }: Pick<DataSetOptions, 'version' | 'onLog'>,
): Promise<void> {
  try {
    const input = await summaryInput(store, version)
    if (input === null) return
    const page = Buffer.from((await store.read(SUMMARY_PAGE_PATH)) ?? []).toString()
    const { isPageOf } = await pages()
    if (!isPageOf(page, input)) await writePage(store, input)
  } catch (error) {
    if (!isExportError(error) || isExportError(error, 'locked')) throw error
    onLog('warn', `the summary page could not be written: ${withLocation(pipeline, error).message}`)
  }
}

export async function isSummaryPageBehind(store: Store, manifest: Uint8Array): Promise<boolean> {
  const page = Buffer.from((await store.read(SUMMARY_PAGE_PATH)) ?? []).toString()
  return !page.includes(manifestDigest(manifest))
}

/** @throws ExportError `storage` when it cannot be written, or another file has its name */
async function writePage(store: OwnedStore, input: SummaryInput): Promise<void> {
  const isTaken = (await store.size(SUMMARY_PAGE_PATH)) !== null
  if (isTaken && !(await beginsWith(store, SUMMARY_PAGE_PATH, SUMMARY_PAGE_START)))
    throw new ExportError({
      kind: 'storage',
      what: 'The file is no summary page of spillway, so it is not overwritten',
      where: SUMMARY_PAGE_PATH,
      next: 'Move it away; `spillway summary` writes the page then.',
    })
  const { summaryPage } = await pages()
  await store.replace(SUMMARY_PAGE_PATH, [summaryPage(input)])
}

async function summaryInput(store: Store, version: string): Promise<SummaryInput | null> {
  const bytes = await store.read(MANIFEST_PATH)
  return bytes === null ? null : inputFrom(bytes, await isMarked(store), version)
}

function inputFrom(bytes: Uint8Array, complete: boolean, version: string): SummaryInput {
  const manifest = parseManifest(bytes)
  // Fields and rules are for those who look into the quarantine.
  const leftOut = leftOutClauses({ ...leftOutOfManifest(manifest), reasons: [] })
  return { manifest, manifestSha256: manifestDigest(bytes), complete, leftOut, version, rows: null }
}

export async function pageOfManifest(
  bytes: Uint8Array,
  complete: boolean,
  version: string,
): Promise<Uint8Array> {
  const { summaryPage } = await pages()
  return Buffer.from(summaryPage(inputFrom(bytes, complete, version)))
}

export type SummarizedDataSet = {
  readonly pipeline: string
  readonly complete: boolean
  readonly rows: number
  readonly shards: number
  /** Whether its rows were asked, which needs DuckDB. */
  readonly hasFacts: boolean
  readonly verdict: string
  readonly markdown: string
}

export type SummarizeOptions = HoldOptions & {
  readonly version: string
  /** Only for the page the data set is locked. */
  readonly format: 'html' | 'markdown'
}

/** Markdown writes nothing. @throws ExportError `locked` during a run; `config` when nothing was exported yet */
export async function summarizeDataSet(
  pipeline: Pipeline,
  options: SummarizeOptions,
): Promise<SummarizedDataSet> {
  const { format, version, stop } = options
  return namingLocations(pipeline, async () => {
    const data = openDataSet(pipeline)
    const summarized = async (store: Store): Promise<SummaryInput> => {
      const input = await summaryInput(store, version)
      if (input === null) throw nothingExported(pipeline)
      // Loaded here, so that runs start faster.
      const { askRows } = await import('../warehouse/ask-rows.ts')
      return { ...input, rows: await askRows(pipeline, input.manifest, stop) }
    }
    if (format === 'markdown') return resultOf(await readSteadily(data, () => summarized(data)))
    // Before the lock, which would create the folder.
    if ((await data.size(MANIFEST_PATH)) === null) throw nothingExported(pipeline)
    return holdDataSet(pipeline, options, async ({ store }) => {
      const input = await summarized(store)
      await writePage(store, input)
      return resultOf(input)
    })
  })
}

async function resultOf(input: SummaryInput): Promise<SummarizedDataSet> {
  const { summaryMarkdown, verdictOf } = await pages()
  const { manifest, complete, rows } = input
  return {
    pipeline: manifest.pipeline,
    complete,
    rows: manifest.totals.rows,
    shards: manifest.totals.shards,
    hasFacts: rows !== null,
    verdict: verdictOf(input),
    markdown: summaryMarkdown(input),
  }
}
