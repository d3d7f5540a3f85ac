import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Clock, Pipeline } from '../../src/core/index.ts'
import { type RunSummary, readPipeline, runPipeline } from '../../src/index.ts'
import { type RunSettings, runOptions } from '../../src/run-options.ts'
import { type Received, sendPage, serveSearches, type TestServer } from '../extract/support.ts'
import { shardHashes } from '../fault/support.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { quarantineByFile } from '../support/quarantine.ts'
import { readStatus } from '../support/rooms.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../support/sandbox.ts'
import { PIPELINE } from '../support/workspace.ts'
import { credential } from '../transform/credentials.ts'

/** Sections of a pipeline file, without their braces. */
type Sections = {
  readonly service?: string
  readonly extract: string
  readonly transform?: string
  readonly load?: string | undefined
}

/** Writes a pipeline file into a folder, and reads it. By default the data set is CSV in the folder `out`. */
export function pipelineIn(
  folder: string,
  url: string,
  { service = '', extract, transform = '', load = 'path: out, format: csv' }: Sections,
): Promise<Pipeline> {
  const text = `name: trial
service: { base_url: '${url}', requests_per_second: 10000, basic_requests_per_second: 10000, ${service} }
extract: { ${extract} }
transform: { ${transform} }
load: { ${load} }
`
  writeFileSync(join(folder, PIPELINE), text)
  return readPipeline(PIPELINE, { env: {}, cwd: folder })
}

/** Ids of the rows in the shards of CSV that have their names, by folder. */
export function idsByFolder(output: string): Record<string, readonly number[]> {
  const root = join(output, 'credentials')
  const found: Record<string, number[]> = {}
  const names = existsSync(root) ? readdirSync(root, { recursive: true, encoding: 'utf8' }) : []
  for (const name of names.filter((name) => name.endsWith('.csv')).sort()) {
    const lines = readFileSync(join(root, name), 'utf8').split('\n').slice(1, -1)
    const folder = name.slice(0, name.lastIndexOf('/'))
    found[folder] = [...(found[folder] ?? []), ...lines.map((line) => Number.parseInt(line, 10))]
  }
  return found
}

const ascending = (ids: readonly number[]): number[] => [...ids].sort((a, b) => a - b)

/** A folder with the data set `out`, and what is in it; ids are in ascending order. */
function newFolder() {
  const folder = scratchFolder()
  const output = join(folder, 'out')
  const byFile = () => quarantineByFile(output)
  return {
    folder,
    /** The entries of all quarantine files, by the name of the file. */
    quarantine: async () => Object.fromEntries(await byFile()),
    rejected: async () =>
      ascending((await byFile()).flatMap(([, entries]) => entries.map(({ id }) => Number(id)))),
    ids: () => ascending(Object.values(idsByFolder(output)).flat()),
    idsByFolder: () => idsByFolder(output),
    /** SHA-256 by path. */
    shards: () => shardHashes(output),
    isWhole: () => existsSync(join(output, '_SUCCESS')),
  }
}

export type World = ReturnType<typeof worldAt>

/**
 * @param requested the section `extract` of the pipeline, without its braces
 * @param more its section `load`, and variables
 */
export function worldAt(
  url: string,
  requested: string,
  { load, env = {} }: { load?: string; env?: Readonly<Record<string, string>> } = {},
) {
  const here = newFolder()
  const read = (transform = '', extract = requested): Promise<Pipeline> =>
    pipelineIn(here.folder, url, { service: 'retries: 0', extract, transform, load })
  return {
    ...here,
    read,
    /**
     * @param transform a section of the pipeline file, without its braces
     * @param extract in place of the section that the world was made with
     */
    async run(transform?: string, extract?: string, settings: RunSettings = {}): Promise<RunSummary> {
      const pipeline = await read(transform, extract)
      const given = { env: { SPILLWAY_TOKEN: 'token', ...env }, ...settings }
      return runPipeline(pipeline, await runOptions(pipeline, given))
    },
  }
}

/** A clock without waits. */
export const IMPATIENT: Clock = {
  now: () => Date.parse('2025-03-10T12:00:00Z'),
  monotonicMs: () => performance.now(),
  sleep: async (_ms, signal) => signal.throwIfAborted(),
}

/** A clock that is so many times as fast. */
export function fasterClock(times: number): Clock {
  return {
    now: () => IMPATIENT.now() + performance.now() * times,
    monotonicMs: () => performance.now() * times,
    sleep: (ms, signal) => setTimeout(ms / times, undefined, { signal }),
  }
}

export function sandboxOf(options: SandboxOptions): Promise<Sandbox> {
  return startSandbox({ nastyRate: 0, requestsPerSecond: 0, basicRequestsPerSecond: 0, ...options })
}

/** Exports into one data set, against a service that may be another one for each. */
export function exportsTo(load?: string) {
  const here = newFolder()
  const log: { readonly message: string; readonly fields: object }[] = []
  const read = (url: string, extract: string, service = '') =>
    pipelineIn(here.folder, url, { service, extract, load })
  return {
    ...here,
    log,
    async run(
      url: string,
      token: string,
      extract: string,
      service?: string,
      clock = IMPATIENT,
    ): Promise<RunSummary> {
      const pipeline = await read(url, extract, service)
      const env = { SPILLWAY_TOKEN: token }
      const onLog = (_level: string, message: string, fields = {}) => void log.push({ message, fields })
      return runPipeline(pipeline, await runOptions(pipeline, { env, clock, onLog }))
    },
    async status(url: string, extract: string) {
      return readStatus(await read(url, extract), IMPATIENT.now())
    },
  }
}

export type Fields = Readonly<Record<string, unknown>>

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
  const server = await serveSearches((request, response) => {
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
