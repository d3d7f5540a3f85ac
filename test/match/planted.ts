import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { credential, startService } from '../fault/hostile-service.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut } from '../support/in-this-process.ts'
import { type Ended, exits } from '../support/run-cli.ts'

export const MASK_KEY = 'an example key of thirty-two bytes'

/** A made-up credential. */
export type Planted = {
  readonly id: number
  readonly identity_name: string
  readonly hash?: string | null
  readonly hash_type?: string | null
  readonly imported_at?: string
  readonly source_id?: string
  readonly source_name?: string
}

/** A data set with planted credentials, and what commands on it need. */
export type World = {
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  call(...words: string[]): Promise<Ended>
  /** The same with other variables. */
  with(env: World['env']): World
}

/** The address of a service that finds the same items for every query; each page has up to `pageItems` of them. */
async function serve(items: readonly Planted[], pageItems: number): Promise<string> {
  const { baseUrl } = await startService(({ body, json }) => {
    const at = Number(body.from?.slice(1) ?? 0)
    const next = at + pageItems < items.length ? `n${at + pageItems}` : null
    json({ items: items.slice(at, at + pageItems).map(itemOf), next })
  })
  return baseUrl
}

function itemOf({ id, source_name = 'Gorse Dump', source_id = 'leak_1', ...given }: Planted) {
  const { source } = credential(id) as { source: object }
  return credential(id, {
    domain: given.identity_name.split('@').at(-1),
    hash: 'sunflower-42',
    imported_at: '2024-03-01T10:20:30.123456+00:00',
    source_id,
    source: { ...source, id: source_id, name: source_name },
    ...given,
  })
}

/** Exports planted credentials. @param sections of the pipeline file */
export async function exportPlanted(
  items: readonly Planted[],
  { transform = {}, load = {}, queries = 1 }: { transform?: object; load?: object; queries?: number } = {},
  env: Readonly<Record<string, string>> = {},
  pageItems = 500,
): Promise<World> {
  const folder = scratchFolder()
  const all = {
    SPILLWAY_BASE_URL: await serve(items, pageItems),
    SPILLWAY_TOKEN: 'fwp_a-made-up-token',
    SPILLWAY_MASK_KEY: MASK_KEY,
    TMPDIR: join(folder, 'tmp'),
    ...env,
  }
  await mkdir(all.TMPDIR)
  const pipeline = {
    name: 'planted',
    service: {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
      base_url: '${SPILLWAY_BASE_URL}',
      requests_per_second: 1000,
    },
    extract: {
      queries: Array.from({ length: queries }, (_, i) => ({ type: 'domain', fqdn: `a${i}.example` })),
    },
    transform,
    load: { path: 'out', ...load },
  }
  await writeFile(join(folder, 'p.yaml'), JSON.stringify(pipeline))
  const world = worldIn(folder, all)
  await exits(0, world.call('run', 'p.yaml', '--allow-plaintext'))
  return world
}

function worldIn(folder: string, env: World['env']): World {
  return {
    folder,
    env,
    call: (...words) => carryOut({ args: words, cwd: folder, env }),
    with: (other) => worldIn(folder, other),
  }
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
