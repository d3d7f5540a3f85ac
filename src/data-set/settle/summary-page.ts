import {
  ExportError,
  isExportError,
  nullIf,
  type OwnedStore,
  type Pipeline,
  type Store,
  SUMMARY_PAGE_PATH,
  SUMMARY_PAGE_START,
} from '../../core/index.ts'
import {
  type CheckpointState,
  MANIFEST_PATH,
  manifestDigest,
  parseManifest,
  type Verdict,
} from '../../state/index.ts'
import type { SummaryInput } from '../../summary/index.ts'
import { withLocation } from '../open-store.ts'
import type { WriteOptions } from '../options.ts'
import { leftOutClauses, leftOutOf } from '../plan/left-out.ts'
import { readVerdict } from '../plan/verdict.ts'

/** Loaded when a page is written: most commands write none. */
export const pages = () => import('../../summary/index.ts')

/** Call it after everything else is on disk: it says whether there is `_SUCCESS`. All errors but `locked` are logged. */
export async function bringSummaryPage(
  pipeline: Pipeline,
  store: OwnedStore,
  state: CheckpointState,
  { version, onLog }: Pick<WriteOptions, 'version' | 'onLog'>,
): Promise<void> {
  try {
    const bytes = await store.read(MANIFEST_PATH)
    if (bytes === null) return
    const verdict = await readVerdict(store, pipeline, state)
    if (await isSummaryPageBehind(store, bytes))
      await writePage(store, inputOf(pipeline, bytes, state, verdict, version))
    else await bringVerdict(pipeline, store, state, verdict)
  } catch (error) {
    if (!isExportError(error) || isExportError(error, 'locked')) throw error
    onLog('warn', `the summary page could not be written: ${withLocation(pipeline, error).message}`)
  }
}

/** Changes the verdict in the page, if there is one; all else in it stays. */
export async function bringVerdict(
  pipeline: Pipeline,
  store: OwnedStore,
  state: CheckpointState,
  verdict: Verdict,
): Promise<void> {
  const page = await pageIn(store)
  if (!page.startsWith(SUMMARY_PAGE_START)) return
  const { withVerdict } = await pages()
  const changed = withVerdict(page, state.header.pipeline, shown(pipeline, state, verdict))
  if (changed !== page) await store.replace(SUMMARY_PAGE_PATH, [changed])
}

async function pageIn(store: Store): Promise<string> {
  return Buffer.from((await store.read(SUMMARY_PAGE_PATH)) ?? []).toString()
}

export async function isSummaryPageBehind(store: Store, manifest: Uint8Array): Promise<boolean> {
  return !(await pageIn(store)).includes(manifestDigest(manifest))
}

/** @throws ExportError `storage` when it cannot be written, or another file has its name */
export async function writePage(store: OwnedStore, input: SummaryInput): Promise<void> {
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

export function inputOf(
  pipeline: Pipeline,
  bytes: Uint8Array,
  state: CheckpointState | null,
  verdict: Verdict,
  version: string,
): SummaryInput {
  return {
    manifest: parseManifest(bytes),
    manifestSha256: manifestDigest(bytes),
    verdict: state === null ? verdict : shown(pipeline, state, verdict),
    version,
    rows: null,
  }
}

/** Fields and rules are for those who look into the quarantine. */
function shown({ transform }: Pipeline, state: CheckpointState, verdict: Verdict): Verdict {
  return { ...verdict, leftOut: leftOutClauses({ ...leftOutOf(transform, state), reasons: [] }) }
}

export async function beginsWith(store: Store, path: string, start: string): Promise<boolean> {
  // It may be a folder, for example.
  const bytes = await store.read(path, 0, start.length).catch(nullIf())
  return Buffer.from(bytes ?? []).toString() === start
}
