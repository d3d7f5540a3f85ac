import { createHash, randomBytes } from 'node:crypto'
import * as z from 'zod'
import { nullIf, type OwnedStore, type Store } from '../../../core/index.ts'
import { CHECKPOINT_PATH, type Manifest, parseManifest, runError } from '../../../state/index.ts'

/** One file for each table that was loaded. Without it only `status` knows less. */
export const LOADS_FOLDER = '_state/loads'

const loaded = z.object({
  target: z.string(),
  table: z.string(),
  loaded_at: z.string(),
  /** Of the shards that the table then had. */
  shards_sha256: z.string(),
})
type Loaded = z.infer<typeof loaded>

/** The last load, if it failed. */
const FAILED_LOAD_PATH = `${LOADS_FOLDER}/failed.json`

const failed = z.object({ target: z.string(), table: z.string(), at: z.string(), error: runError })

export function rememberLoad(
  store: Store,
  { shards }: Manifest,
  table: Omit<Loaded, 'shards_sha256'>,
): Promise<void> {
  const name = createHash('sha256').update(`${table.target}\n${table.table}`).digest('hex').slice(0, 16)
  const note: Loaded = { ...table, shards_sha256: digestOf(shards) }
  return remembering(store, async (owned) => {
    await owned.replace(`${LOADS_FOLDER}/${name}.json`, [`${JSON.stringify(note)}\n`])
    if ((await store.size(FAILED_LOAD_PATH)) !== null) await owned.remove(FAILED_LOAD_PATH)
  })
}

export function rememberFailedLoad(store: Store, note: z.infer<typeof failed>): Promise<void> {
  return remembering(store, (owned) => owned.replace(FAILED_LOAD_PATH, [`${JSON.stringify(note)}\n`]))
}

/** Takes no lock, so that no run waits for it; whoever may read the data set alone leaves nothing behind. */
async function remembering(store: Store, write: (owned: OwnedStore) => Promise<void>): Promise<void> {
  try {
    if ((await store.size(CHECKPOINT_PATH)) === null) return
    const owned = await store.own(randomBytes(6).toString('hex'))
    await write(owned).finally(() => owned.release())
  } catch {
    // What was done in the database counts.
  }
}

export async function tablesBehind(store: Store, manifest: Uint8Array): Promise<readonly string[]> {
  const names = await store.list(LOADS_FOLDER)
  const now = names.length === 0 ? null : shardsIn(manifest)
  if (now === null) return []
  const behind: string[] = []
  const failure = noteIn(failed, await store.read(FAILED_LOAD_PATH))
  if (failure !== null) {
    const { table, target, at, error } = failure
    behind.push(
      `the last load, at ${at} into the table ${table} in ${target}, failed: ${error.what}. ${error.next}`,
    )
  }
  for (const name of names) {
    const note = noteIn(loaded, await store.read(`${LOADS_FOLDER}/${name}`))
    if (note !== null && note.shards_sha256 !== now)
      behind.push(
        `the table ${note.table} in ${note.target} was loaded at ${note.loaded_at}, and the data set has changed since: see \`load\``,
      )
  }
  return behind
}

function shardsIn(manifest: Uint8Array): string | null {
  try {
    return digestOf(parseManifest(manifest).shards)
  } catch (error) {
    return nullIf('damaged')(error)
  }
}

function digestOf(shards: Manifest['shards']): string {
  const hash = createHash('sha256')
  for (const { path, sha256 } of shards) hash.update(`${path}\n${sha256}\n`)
  return hash.digest('hex')
}

function noteIn<Note>(schema: z.ZodType<Note>, bytes: Uint8Array | null): Note | null {
  try {
    return schema.parse(JSON.parse(Buffer.from(bytes ?? []).toString()))
  } catch {
    return null
  }
}
