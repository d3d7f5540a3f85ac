import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { z } from 'zod'
import { ExportError, type Store } from '../core/index.ts'
import { putFirst, requireConditions } from './conditional-writes.ts'
import { type Bucket, Conflict } from './requests/index.ts'

/** Says where the state of a data set is kept when that is not in the bucket; the same in both places. */
const HOME = '_state/home.json'

const homeSchema = z.object({ id: z.string(), host: z.string(), folder: z.string() })
type Home = z.infer<typeof homeSchema>

/**
 * Binds a data set in a bucket to the one folder that holds its state, so that two machines never write to it, each
 * with a state of its own.
 * @throws ExportError `config` when the state is kept elsewhere
 */
export async function bindHome(bucket: Bucket, state: Store, folder: string): Promise<void> {
  const known = read(await state.read(HOME))
  if (await refuseOtherHome(bucket, known)) return
  if ((await bucket.head('_state/checkpoint.jsonl')) !== null) throw inBucket()
  const home = known ?? { id: randomUUID(), host: hostname(), folder }
  const bytes = Buffer.from(`${JSON.stringify(home)}\n`)
  if (known === null) await state.writeWhole(HOME, [bytes])
  try {
    await putFirst(bucket, HOME, bytes)
  } catch (error) {
    if (!(error instanceof Conflict)) throw error
    await refuseOtherHome(bucket, home)
    return
  }
  await requireConditions(bucket, HOME, bytes)
}

/** @returns whether the bucket names that home @throws ExportError `config` when it names another one */
export async function refuseOtherHome(bucket: Bucket, home: Home | null): Promise<boolean> {
  const named = read(await bucket.get(HOME))
  if (named === null || named.id === home?.id) return named !== null
  throw new ExportError(
    'config',
    `The state of this data set is kept in ${named.folder} on host ${named.host}`,
    HOME,
    `Run there, or bring that folder here and name it as state.path; if it is lost, delete ${HOME} from the bucket and start over with --fresh.`,
  )
}

function read(bytes: Uint8Array | null): Home | null {
  if (bytes === null) return null
  try {
    return homeSchema.parse(JSON.parse(Buffer.from(bytes).toString()))
  } catch (error) {
    throw new ExportError('damaged', 'The file can not be read', HOME, 'Restore it from a backup.', {
      cause: error,
    })
  }
}

function inBucket(): ExportError {
  return new ExportError(
    'config',
    'The state of this data set is kept in the bucket',
    'state.path',
    'Leave state.path out, choose another load.path, or start over there without it.',
  )
}
