import { createHash } from 'node:crypto'
import {
  type Aggregates,
  ExportError,
  type JournalEntry,
  type NamedPipeline,
  REPORT_PATH,
  type Store,
} from '../../core/index.ts'
import { type CheckpointState, MANIFEST_PATH, SIGNATURE_PATH, SUCCESS_PATH } from '../../state/index.ts'
import { isReport } from '../data-set/data-set.ts'
import { planAsOfLastRun, retiredQueries } from '../data-set/whole.ts'
import { countAnew } from './count-anew.ts'
import type { ReportContext } from './gather.ts'
import { type Known, knownFromState } from './known.ts'

export type ReportOptions = {
  readonly nowMs: number
  /** Spillway's own. */
  readonly version: string
  /** The process is about to be ended: what takes time is left out. */
  readonly hurry: boolean
}

/** Reading so many rows takes no time that anybody would notice. */
const FEW_ROWS = 100_000

/**
 * Writes the report of a data set at the end of a run. The journal has the aggregates of its rows. They are
 * counted anew only if some rows were invalidated and few are left.
 * @param record appends the counts to the journal
 * @throws ExportError `storage` when it can't be written, or what lies in its place is none of ours
 */
export async function writeReport(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
  { mostRows = FEW_ROWS, ...options }: ReportOptions & { readonly mostRows?: number },
  record: (fact: JournalEntry) => Promise<void>,
): Promise<void> {
  const sums = await sumsOf(pipeline, store, state, options.hurry ? 0 : mostRows, record)
  const retired = retiredQueries(pipeline, state).length
  const isMarked = (await store.size(SUCCESS_PATH)) !== null
  const known = knownFromState(pipeline, state, sums, planAsOfLastRun(pipeline, state), isMarked)
  await writePage(pipeline, store, known, { ...options, retired })
}

/** Aggregates of all rows. They are counted anew if the journal lacks them and there are few enough rows to read. */
async function sumsOf(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
  mostRows: number,
  record: (fact: JournalEntry) => Promise<void>,
): Promise<Aggregates> {
  const known = state.aggregates()
  const { rows } = state.shards
  if (known.rows === rows || rows > mostRows) return known
  const sums = await countAnew(pipeline, store, state.shards)
  await record({ kind: 'sums', ...sums, anew: true })
  return sums
}

/** @throws ExportError as {@link writeReport} */
export async function writePage(
  pipeline: NamedPipeline,
  store: Store,
  known: Known,
  options: ReportOptions & { readonly retired: number },
): Promise<void> {
  if ((await isReport(store)) === false) throw notOurs()
  // Loaded here: what draws charts is larger than all the rest.
  const { renderReport } = await import('../../report/index.ts')
  const { gatherReport } = await import('./gather.ts')
  const data = gatherReport(pipeline, known, { ...options, seal: await sealOf(store) })
  const page = await renderReport(data, options.hurry, await earlierPage(store))
  await store.writeWhole(REPORT_PATH, [page])
}

/** Far more than a page ever has. */
const MOST_PAGE_BYTES = 10_000_000

/** The report as it stands, whose charts may be good still. */
async function earlierPage(store: Store): Promise<string | null> {
  const size = await store.size(REPORT_PATH)
  if (size === null || size > MOST_PAGE_BYTES) return null
  const bytes = await store.read(REPORT_PATH)
  return bytes === null ? null : Buffer.from(bytes).toString()
}

/** What the manifest is told by, and whether somebody signed it. */
async function sealOf(store: Store): Promise<ReportContext['seal']> {
  const size = await store.size(MANIFEST_PATH)
  if (size === null) return { manifest: null, signed: false }
  const hash = createHash('sha256')
  for await (const piece of store.stream(MANIFEST_PATH)) hash.update(piece)
  return { manifest: hash.digest('hex'), signed: (await store.size(SIGNATURE_PATH)) !== null }
}

function notOurs(): ExportError {
  return new ExportError(
    'storage',
    'The file is no report of spillway, so it is not written over',
    REPORT_PATH,
    'Move it away; `spillway summary` writes the report then.',
  )
}
