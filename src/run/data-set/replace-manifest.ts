import type { NamedPipeline, Store } from '../../core/index.ts'
import { moveToOrphans } from '../../load/index.ts'
import { type CheckpointState, SIGNATURE_BYTES, SIGNATURE_PATH, writeManifest } from '../../state/index.ts'
import type { RunObserver } from '../setting/observer.ts'
import { retiredQueries } from './whole.ts'

/**
 * Writes the manifest that belongs to a checkpoint. The signature of the one before goes first: it vouches for what is
 * no longer there, and nobody who finds it must take it for one of the new manifest.
 */
export async function replaceManifest(
  pipeline: NamedPipeline,
  store: Store,
  state: CheckpointState,
  { log }: Pick<RunObserver, 'log'>,
): Promise<void> {
  await removeSignature(store, log)
  await writeManifest(store, pipeline, state, retiredQueries(pipeline, state))
}

async function removeSignature(store: Store, log: RunObserver['log']): Promise<void> {
  const size = await store.size(SIGNATURE_PATH)
  if (size === null) return
  if (size === SIGNATURE_BYTES) {
    await store.remove(SIGNATURE_PATH)
    log('info', 'the manifest is a new one, so the signature of the one before was removed')
    return
  }
  const aside = await moveToOrphans(store, SIGNATURE_PATH)
  log('warn', `${SIGNATURE_PATH} is no signature of spillway; moved to ${aside}`)
}
