import { randomBytes } from 'node:crypto'
import { type ExportError, isExportError, nullIf, type Pipeline, plainError } from '../../core/index.ts'
import { readHolder } from '../../state/index.ts'
import { bringVerdict } from '../commands/summary-page/write-summary-page.ts'
import { openStore, withLocation } from '../open-store.ts'
import { knownState, standingOf, verdictOf } from '../plan/verdict.ts'
import { writeFailedStart } from './start.ts'

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
      const told = plainError(withLocation(pipeline, error))
      await writeFailedStart(owned, told, state, new Date(nowMs).toISOString())
      const standing = await standingOf(owned, state, { fault: null, isHeld: false })
      await bringVerdict(pipeline, owned, state, verdictOf(pipeline, state, standing))
    } finally {
      await owned.release()
    }
  } catch (failure) {
    // The error itself is reported in any case.
    if (!isExportError(failure)) throw failure
  }
}
