import { createHash, randomBytes } from 'node:crypto'
import * as z from 'zod'
import { nullIf, type Store } from '../../core/index.ts'
import { CHECKPOINT_PATH, type Manifest, readManifest } from '../../state/index.ts'

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

/**
 * Remembers that a table has the shards of a manifest. It takes no lock, so that no run waits for it; whoever may read the
 * data set alone leaves nothing behind.
 */
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

/** The tables that are not in line with the manifest, a sentence each. */
export async function tablesBehind(store: Store): Promise<readonly string[]> {
  const names = await store.list(LOADS_FOLDER)
  const manifest = names.length === 0 ? null : await readManifest(store).catch(nullIf('damaged'))
  if (manifest === null) return []
  const now = digestOf(manifest.shards)
  const behind: string[] = []
  for (const name of names) {
    const bytes = await store.read(`${LOADS_FOLDER}/${name}`)
    const { data } = loaded.safeParse(jsonOf(bytes))
    if (data !== undefined && data.shards_sha256 !== now)
      behind.push(
        `the table ${data.table} in ${data.target} was loaded at ${data.loaded_at}, and the data set has changed since: see \`load\``,
      )
  }
  return behind
}

function digestOf(shards: Manifest['shards']): string {
  const hash = createHash('sha256')
  for (const { path, sha256 } of shards) hash.update(`${path}\n${sha256}\n`)
  return hash.digest('hex')
}

function jsonOf(bytes: Uint8Array | null): unknown {
  try {
    return JSON.parse(Buffer.from(bytes ?? []).toString())
  } catch {
    return null
  }
}
