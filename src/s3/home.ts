import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import * as z from 'zod'
import { ExportError, type Store } from '../core/index.ts'
import { type Bucket, putFirst, requireConditions } from './requests/bucket.ts'
import { Conflict } from './requests/connection.ts'

/** Names the location of a data set's state outside the bucket. The same file is in the bucket and beside the state. */
const HOME = '_state/home.json'

const homeSchema = z.object({ id: z.string(), host: z.string(), folder: z.string() })
type Home = z.infer<typeof homeSchema>

/**
 * Binds a data set in a bucket to the one folder that holds its state, so that two machines with two states never write to
 * the same data set.
 * @throws ExportError `config` when the state is kept elsewhere, or the store ignores conditional writes
 * @throws ExportError `locked` when the file is removed at the same time
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
    await requireConditions(bucket, HOME, bytes)
  } catch (error) {
    if (!(error instanceof Conflict)) throw error
    // Another run has written the file, or removed it.
    if (!(await refuseOtherHome(bucket, home))) throw homeRemoved()
  }
}

/** @returns whether the bucket names this home @throws ExportError `config` when it names another one */
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

function homeRemoved(): ExportError {
  return new ExportError(
    'locked',
    'The file that names the location of the state was removed while this run wrote it',
    HOME,
    'See that one pipeline alone writes to this load.path, then run again.',
  )
}

function inBucket(): ExportError {
  return new ExportError(
    'config',
    'The state of this data set is kept in the bucket',
    'state.path',
    'Leave state.path out, choose another load.path, or start over there without it.',
  )
}
