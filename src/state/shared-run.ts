import { z } from 'zod'
import { ExportError, type Store } from '../core/index.ts'

/** Says that workers on any number of machines export a data set, and that what they did is not in its checkpoint yet. */
export const SHARED_RUN_PATH = '_state/shared-run.json'

const schema = z.object({
  run: z.string(),
  submitted_at: z.string(),
  /** Where its state is, as it may be shown. */
  database: z.string(),
})

export type SharedRun = z.infer<typeof schema>

/** @returns null when no workers are at it; what can't be read stands for a run that nobody knows */
export async function readSharedRun(store: Pick<Store, 'read'>): Promise<SharedRun | null> {
  const bytes = await store.read(SHARED_RUN_PATH)
  if (bytes === null) return null
  try {
    return schema.parse(JSON.parse(Buffer.from(bytes).toString()))
  } catch {
    return { run: '', submitted_at: 'some time ago', database: 'a database that is not known' }
  }
}

export function sharedRunText(shared: SharedRun): string {
  return `${JSON.stringify(shared)}\n`
}

/** @throws ExportError `locked` unless the run given is the one that workers are at, or there is none */
export async function refuseSharedRun(store: Store, run: string | null): Promise<void> {
  const shared = await readSharedRun(store)
  if (shared === null || shared.run === run) return
  throw new ExportError(
    'locked',
    `Workers export this data set, since ${shared.submitted_at}; where it stands is in ${shared.database}`,
    SHARED_RUN_PATH,
    'Submit it again to go on with it, or wait for its end; `status` says how far it is. If that database is gone for good, start over with --fresh.',
  )
}
