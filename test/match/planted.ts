import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { credential, startService } from '../fault/hostile-service.ts'
import { exits } from '../support/run-cli.ts'
import { type Environment, newWorkspace, type PipelineParts, type Workspace } from '../support/workspace.ts'

export const MASK_KEY = 'an example key of thirty-two bytes'

export type Planted = {
  readonly id: number
  readonly identity_name: string
  readonly hash?: string | null
  readonly imported_at?: string
  readonly source_id?: string
}

function itemOf({ id, source_id = 'leak_1', ...given }: Planted) {
  const { source } = credential(id) as { source: object }
  return credential(id, {
    domain: given.identity_name.split('@').at(-1),
    hash: 'sunflower-42',
    imported_at: '2024-03-01T10:20:30.123456+00:00',
    source_id,
    source: { ...source, id: source_id, name: 'Gorse Dump' },
    ...given,
  })
}

/**
 * Exports planted credentials from a service that finds the same for every query, in pages of up to `pageItems`.
 * @param sections of the pipeline file
 */
export async function exportPlanted(
  items: readonly Planted[],
  { queries = 1, ...sections }: PipelineParts & { readonly queries?: number } = {},
  env: Environment = {},
  pageItems = 500,
): Promise<Workspace> {
  const { baseUrl } = await startService(({ body, json }) => {
    const at = Number(body.from?.slice(1) ?? 0)
    const next = at + pageItems < items.length ? `n${at + pageItems}` : null
    json({ items: items.slice(at, at + pageItems).map(itemOf), next })
  })
  const domains = Array.from({ length: queries }, (_, i) => `a${i}.example`)
  const access = { SPILLWAY_BASE_URL: baseUrl, SPILLWAY_MASK_KEY: MASK_KEY, ...env }
  const { folder, ...made } = await newWorkspace({ extract: { domains }, ...sections }, {}, access)
  const TMPDIR = join(folder, 'tmp')
  await mkdir(TMPDIR)
  const here = made.with({ TMPDIR })
  await exits(0, here.call('run', '--allow-plaintext'))
  return here
}

/** The files of a folder that hold one of some texts, but for those of some names. */
export async function filesWith(
  folder: string,
  texts: readonly string[],
  except: readonly string[] = [],
): Promise<readonly string[]> {
  const found: string[] = []
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || except.some((name) => path.startsWith(join(folder, name)))) continue
    const content = (await readFile(path)).toString().toLowerCase()
    if (texts.some((text) => content.includes(text.toLowerCase()))) found.push(path)
  }
  return found
}
