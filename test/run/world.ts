import { access, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Pipeline } from '../../src/core/index.ts'
import { type RunSettings, type RunSummary, readPipeline, runOptions, runPipeline } from '../../src/index.ts'
import { type Received, sendPage, serve, type TestServer } from '../extract/support.ts'
import { credential } from '../transform/credentials.ts'

/** A data set of CSV, and the pipeline that exports to it. */
export type World = {
  readonly folder: string
  /**
   * @param transform a section of the pipeline file, in braces
   * @param extract in place of the section that the world was made with
   */
  run(transform?: string, extract?: string, settings?: RunSettings): Promise<RunSummary>
  read(transform?: string, extract?: string): Promise<Pipeline>
  /** The entries of all quarantine files, by the name of the file. */
  quarantine(): Promise<Record<string, readonly Record<string, unknown>[]>>
  /** Ids of the items in quarantine, file by file. */
  refused(): Promise<number[]>
  /** Ids of the rows in sealed shards, by folder. */
  rowsByFolder(): Promise<Record<string, readonly number[]>>
  rows(): Promise<number[]>
  /** Whether the data set has `_SUCCESS`. */
  isWhole(): Promise<boolean>
}

/**
 * @param requested the section `extract` of the pipeline, without its braces
 * @param more its section `load`, and variables
 */
export async function worldAt(
  url: string,
  requested: string,
  {
    load = 'format: csv, path: out',
    env = {},
  }: { load?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-run-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const output = join(folder, 'out')
  const text = (path: string): Promise<string> => readFile(join(output, path), 'utf8')
  const world: World = {
    folder,
    async read(transform = '{}', extract = requested) {
      const file = `name: trial
service: { base_url: '${url}', requests_per_second: 10000, retries: 0 }
extract: { ${extract} }
transform: ${transform}
load: { ${load} }
`
      await writeFile(join(folder, 'p.yaml'), file)
      return readPipeline('p.yaml', { env: {}, cwd: folder })
    },
    async run(transform, extract, settings = {}) {
      const pipeline = await world.read(transform, extract)
      const given = { env: { SPILLWAY_TOKEN: 'token', ...env }, ...settings }
      return runPipeline(pipeline, await runOptions(pipeline, given))
    },
    async quarantine() {
      const names = await readdir(join(output, '_quarantine')).catch(() => [])
      const entries = await Promise.all(
        names.sort().map(async (name) => {
          const lines = (await text(`_quarantine/${name}`)).split('\n').slice(0, -1)
          return [name, lines.map((line) => JSON.parse(line) as Record<string, unknown>)] as const
        }),
      )
      return Object.fromEntries(entries)
    },
    async refused() {
      return Object.values(await world.quarantine()).flatMap((entries) => entries.map(({ id }) => Number(id)))
    },
    async rowsByFolder() {
      const names = await readdir(join(output, 'credentials'), { recursive: true }).catch(() => [])
      const found: Record<string, number[]> = {}
      for (const name of names.filter((name) => name.endsWith('.csv')).sort()) {
        const lines = (await text(join('credentials', name))).split('\n').slice(1, -1)
        const folder = name.slice(0, name.lastIndexOf('/'))
        const ids = lines.map((line) => Number.parseInt(line, 10))
        found[folder] = [...(found[folder] ?? []), ...ids]
      }
      return found
    },
    rows: async () => Object.values(await world.rowsByFolder()).flat(),
    isWhole: () =>
      access(join(output, '_SUCCESS')).then(
        () => true,
        () => false,
      ),
  }
  return world
}

export type Fields = Readonly<Record<string, unknown>>

/** A credential of that time. */
export function itemAt(id: number, imported_at: string): Fields {
  return credential({ id, imported_at })
}

/** The same, but it breaks the schema. */
export function brokenAt(id: number, imported_at: unknown): Fields {
  return credential({ id, imported_at, identity_name: null })
}

/** Responds to a request in place of the service. @returns whether it did */
type Fault = (request: Received, response: Parameters<typeof sendPage>[0]) => boolean

export type ItemService = TestServer & {
  /** Its items, in the order in which it sends them. */
  items: readonly Fields[]
  fault: Fault
  /** The requests so far: the days of the filter, and the cursor if there was one. */
  requested(): readonly string[]
}

/**
 * A service with these items: pages of so many in the order given, filtered by `imported_at`. Items without a valid
 * time pass every filter.
 */
export async function serviceOf(items: readonly Fields[], pageSize: number): Promise<ItemService> {
  const server = await serve((request, response) => {
    if (service.fault(request, response)) return
    const { from, filters } = request.json as { from?: string; filters?: { imported_at: Filter } }
    const found = service.items.filter(({ imported_at }) => passes(imported_at, filters?.imported_at))
    const start = Number(from?.slice(1) ?? 0)
    const end = start + pageSize
    sendPage(response, end < found.length ? `c${end}` : null, found.slice(start, end))
  })
  const service: ItemService = {
    ...server,
    items,
    fault: () => false,
    requested: () =>
      server.received.map(({ json }) => {
        const { from, filters } = json as { from?: string; filters?: { imported_at: Filter } }
        const { gte = '', lte = '' } = filters?.imported_at ?? {}
        return `${gte.slice(0, 10)}..${lte.slice(0, 10)}${from === undefined ? '' : ` ${from}`}`
      }),
  }
  return service
}

type Filter = { readonly gte?: string; readonly lte?: string }

function passes(value: unknown, { gte, lte }: Filter = {}): boolean {
  const at = Date.parse(String(value))
  if (Number.isNaN(at)) return true
  return (gte === undefined || at >= Date.parse(gte)) && (lte === undefined || at <= Date.parse(lte))
}
