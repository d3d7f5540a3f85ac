import { randomBytes } from 'node:crypto'
import {
  type ExportError,
  isExportError,
  nullIf,
  type OwnedStore,
  type Pipeline,
  plainError,
} from '../../core/index.ts'
import { readHolder } from '../../state/index.ts'
import { openStore, withLocation } from '../open-store.ts'
import { FAILED_START_PATH, type FailedStart, readVerdict } from '../plan/verdict.ts'
import { bringVerdict } from '../settle/summary-page.ts'
import { knownState } from './find-state.ts'

/**
 * Leaves on a known data set why a start could not begin, as far as it can be written: takes no lock, so that no run
 * waits for it. Of one that another run keeps out there is nothing to say.
 */
export async function recordFailedStart(
  pipeline: Pipeline,
  error: ExportError,
  nowMs: number,
): Promise<void> {
  if (error.kind === 'locked') return
  try {
    const store = openStore(pipeline)
    const { state } = await knownState(store)
    const holder = state === null ? null : await readHolder(store, nowMs).catch(nullIf('damaged'))
    if (state === null || holder?.isLate === false) return
    const owned = await store.own(randomBytes(6).toString('hex'))
    try {
      const told: FailedStart = {
        at: new Date(nowMs).toISOString(),
        runs: state.runs.length,
        error: plainError(withLocation(pipeline, error)),
      }
      await owned.replace(FAILED_START_PATH, [`${JSON.stringify(told)}\n`])
      await bringVerdict(pipeline, owned, state, await readVerdict(owned, pipeline, state))
    } finally {
      await owned.release()
    }
  } catch (failure) {
    // The error itself is reported in any case.
    if (!isExportError(failure)) throw failure
  }
}

export async function removeFailedStart(store: OwnedStore): Promise<void> {
  if ((await store.size(FAILED_START_PATH)) !== null) await store.remove(FAILED_START_PATH)
}
