import type { Store } from '../../core/index.ts'
import { MANIFEST_PATH, type Verdict } from '../../state/index.ts'
import type { SummaryInput } from '../../summary/index.ts'
import type { DataSet } from '../data-set.ts'
import { knownState } from '../open/find-state.ts'
import { nothingExported } from '../open-store.ts'
import type { WriteOptions } from '../options.ts'
import { readVerdict } from '../plan/verdict.ts'
import { inputOf, pages, writePage } from '../settle/summary-page.ts'

export type SummarizedDataSet = {
  readonly pipeline: string
  readonly rows: number
  readonly shards: number
  /** Whether its rows were asked, which needs DuckDB. */
  readonly hasFacts: boolean
  readonly verdict: Verdict
  readonly markdown: string
}

/** Markdown writes nothing. @throws ExportError `locked` during a run; `config` when nothing was exported yet */
export async function summarizeDataSet(
  dataSet: DataSet,
  format: 'html' | 'markdown',
  options: Pick<WriteOptions, 'clock' | 'stop' | 'onLog' | 'version'>,
): Promise<SummarizedDataSet> {
  const { pipeline, planned } = dataSet
  const summarized = async (
    store: Store,
    bytes: Uint8Array,
    atWork: false | 'perhaps',
  ): Promise<SummaryInput> => {
    const { state, fault } = await knownState(store)
    const verdict = await readVerdict(store, planned, state, { fault, atWork })
    const input = inputOf(planned, bytes, state, verdict, options.version)
    // Loaded here, so that runs start faster.
    const { askRows } = await import('./warehouse/ask-rows.ts')
    return { ...input, rows: await askRows(dataSet, input.manifest, options.stop) }
  }
  // Before the lock, which would create the folder, also if there is no data set.
  const found = await dataSet.reading(async (_, bytes) =>
    format === 'markdown' ? summarized(dataSet.store, bytes, 'perhaps') : null,
  )
  if (found !== null) return resultOf(found)
  return dataSet.hold(options, async (store) => {
    const bytes = await store.read(MANIFEST_PATH)
    if (bytes === null) throw nothingExported(pipeline)
    const input = await summarized(store, bytes, false)
    await writePage(store, input)
    return resultOf(input)
  })
}

async function resultOf(input: SummaryInput): Promise<SummarizedDataSet> {
  const { summaryMarkdown } = await pages()
  const { manifest, verdict, rows } = input
  return {
    pipeline: manifest.pipeline,
    rows: manifest.totals.rows,
    shards: manifest.totals.shards,
    hasFacts: rows !== null,
    verdict,
    markdown: summaryMarkdown(input),
  }
}
