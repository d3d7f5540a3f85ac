import { type Log, type NamedPipeline, nullIf, type OwnedStore, type Store } from '../../core/index.ts'
import { moveToOrphans } from '../../load/index.ts'
import type { Plan } from '../../pipeline/index.ts'
import {
  type CheckpointState,
  isManifest,
  isManifestOf,
  MANIFEST_PATH,
  SIGNATURE_BYTES,
  SIGNATURE_PATH,
  writeManifest,
} from '../../state/index.ts'
import { lastBegun, retiredQueries } from '../plan/plan-state.ts'
import { scopeOf } from '../plan/scope.ts'
import { waitingIn } from '../plan/verdict.ts'

/**
 * The former signature goes first: it must never be found beside the new manifest. A signed manifest from which only the
 * list of runs differs stays, with its signature. @param filePlan of the file as of the last run
 */
export async function replaceManifest(
  pipeline: NamedPipeline,
  store: OwnedStore,
  state: CheckpointState,
  filePlan: Plan | null,
  log: Log,
): Promise<void> {
  const plan = {
    scope: state.scope ?? scopeOf(pipeline),
    planned: Array.from(filePlan?.partitions() ?? [], ({ key }) => key),
    retired: retiredQueries(pipeline, state),
    waiting: waitingIn(pipeline, lastBegun(state)),
  }
  const before = await store.read(MANIFEST_PATH)
  if (before !== null) {
    if (isManifest(before, pipeline, state, plan)) return
    const isSigned = (await store.size(SIGNATURE_PATH)) === SIGNATURE_BYTES
    if (isSigned && isIntact(before, pipeline, state, plan)) return
  }
  await removeSignature(store, log)
  await writeManifest(store, pipeline, state, plan)
}

/** Whether bytes are the manifest as of an earlier run, to their end. */
function isIntact(...[bytes, ...of]: Parameters<typeof isManifestOf>): boolean {
  try {
    return isManifestOf(bytes, ...of)
  } catch (error) {
    return nullIf('damaged')(error) ?? false
  }
}

/** The last signature that went with its manifest. */
export const FORMER_PATH = '_state/former.sig'

/** Whether the manifest has changed since it was signed. */
export async function isSignatureStale(store: Store): Promise<boolean> {
  return (await store.size(SIGNATURE_PATH)) === null && (await store.size(FORMER_PATH)) !== null
}

async function removeSignature(store: OwnedStore, log: Log): Promise<void> {
  const size = await store.size(SIGNATURE_PATH)
  if (size === null) return
  if (size === SIGNATURE_BYTES) {
    await store.replace(FORMER_PATH, [(await store.read(SIGNATURE_PATH))!])
    await store.remove(SIGNATURE_PATH)
    log('info', 'the manifest changed, so its former signature was removed')
    return
  }
  const aside = await moveToOrphans(store, SIGNATURE_PATH)
  log('warn', `${SIGNATURE_PATH} is no signature of spillway; moved to ${aside}`)
}
