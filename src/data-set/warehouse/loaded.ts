import { createHash, randomBytes } from 'node:crypto'
import * as z from 'zod'
import { nullIf, type Store } from '../../core/index.ts'
import { CHECKPOINT_PATH, type Manifest, parseManifest } from '../../state/index.ts'

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

/** Takes no lock, so that no run waits for it; whoever may read the data set alone leaves nothing behind. */
export async function rememberLoad(
  store: Store,
  { shards }: Manifest,
  table: Omit<Loaded, 'shards_sha256'>,
): Promise<void> {
  const name = createHash('sha256').update(`${table.target}\n${table.table}`).digest('hex').slice(0, 16)
  const text = JSON.stringify({ ...table, shards_sha256: digestOf(shards) } satisfies Loaded)
  try {
    if ((await store.size(CHECKPOINT_PATH)) === null) return
    const owned = await store.own(randomBytes(6).toString('hex'))
    await owned.replace(`${LOADS_FOLDER}/${name}.json`, [`${text}\n`]).finally(() => owned.release())
  } catch {
    // The rows are loaded.
  }
}

export async function tablesBehind(store: Store, manifest: Uint8Array): Promise<readonly string[]> {
  const names = await store.list(LOADS_FOLDER)
  const now = names.length === 0 ? null : shardsIn(manifest)
  if (now === null) return []
  const behind: string[] = []
  for (const name of names) {
    const note = loadedIn(await store.read(`${LOADS_FOLDER}/${name}`))
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

function loadedIn(bytes: Uint8Array | null): Loaded | null {
  try {
    return loaded.parse(JSON.parse(Buffer.from(bytes ?? []).toString()))
  } catch {
    return null
  }
}
