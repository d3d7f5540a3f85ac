import * as z from 'zod'
import type { OwnedStore, PlainError, Store } from '../../core/index.ts'
import { type CheckpointState, runError } from '../../state/index.ts'

/** Why the last start could not begin. In `_state` alone, so that a signature stays valid. */
const FAILED_START_PATH = '_state/failed-start.json'

const failedStart = z.object({
  at: z.string(),
  /** Number of runs before it: one that begins later makes it void. */
  runs: z.number(),
  error: runError,
})

/** null: the last start began, or has left nothing that can be read. */
export async function readFailedStart(store: Store, { runs }: CheckpointState): Promise<PlainError | null> {
  try {
    const bytes = await store.read(FAILED_START_PATH)
    if (bytes === null) return null
    const { error, runs: before } = failedStart.parse(JSON.parse(Buffer.from(bytes).toString()))
    return before === runs.length ? error : null
  } catch {
    return null
  }
}

export async function writeFailedStart(
  store: OwnedStore,
  error: PlainError,
  { runs }: CheckpointState,
  at: string,
) {
  const told: z.infer<typeof failedStart> = { at, runs: runs.length, error }
  await store.replace(FAILED_START_PATH, [`${JSON.stringify(told)}\n`])
}

export async function removeFailedStart(store: OwnedStore): Promise<void> {
  if ((await store.size(FAILED_START_PATH)) !== null) await store.remove(FAILED_START_PATH)
}
