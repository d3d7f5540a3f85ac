import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut } from '../support/in-this-process.ts'
import { portOf } from '../support/listening.ts'
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

/** A service that finds the same items for every query; each page has up to `pageItems` of them. */
async function serve(items: readonly Planted[], pageItems: number): Promise<number> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      const { from } = JSON.parse(body || '{}') as { from?: string }
      const at = from === undefined || from === null ? 0 : Number(from.slice(1))
      const next = at + pageItems < items.length ? `n${at + pageItems}` : null
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ items: items.slice(at, at + pageItems).map(itemOf), next }))
    })
  })
  return portOf(server)
}

function itemOf({
  id,
  identity_name,
  hash = 'sunflower-42',
  hash_type = null,
  imported_at,
  source_id,
  source_name,
}: Planted) {
  const source = {
    id: source_id ?? 'leak_1',
    name: source_name ?? 'Gorse Dump',
    description_en: null,
    description_fr: null,
    is_alert_enabled: true,
    breached_at: null,
    leaked_at: null,
  }
  const domain = identity_name.split('@').at(-1)
  const at = imported_at ?? '2024-03-01T10:20:30.123456+00:00'
  return { id, domain, identity_name, hash, hash_type, imported_at: at, source_id: source.id, source }
}

/** Exports planted credentials. @param sections of the pipeline file */
export async function exportPlanted(
  items: readonly Planted[],
  { transform = {}, load = {}, queries = 1 }: { transform?: object; load?: object; queries?: number } = {},
  env: Readonly<Record<string, string>> = {},
  pageItems = 500,
): Promise<World> {
  const port = await serve(items, pageItems)
  const folder = scratchFolder()
  const all = {
    SPILLWAY_BASE_URL: `http://127.0.0.1:${port}/base`,
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
