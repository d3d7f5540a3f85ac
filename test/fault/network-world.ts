import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { type Sandbox, type SandboxOptions, startSandbox } from '../support/sandbox.ts'
import { type Ended, newWorkspace, runCli, shardPaths, type Workspace } from './support.ts'

export const DOMAINS = ['scatterholt.com', 'quillmere.net']

/** Small pages, so that a chain takes several requests; no rate limit, so that only faults cause waits. */
export const SMALL: SandboxOptions = { records: 150, seed: 'network', requestsPerSecond: 0 }

export type PipelineParts = {
  /** Lines below `service:`, in YAML's flow style. */
  readonly service?: string
  readonly extract?: string
  readonly load?: string
  readonly transform?: string
  readonly domains?: readonly string[]
  readonly pageSize?: number
  readonly concurrency?: number
}

/** A pipeline into CSV files, whose rows are easy to compare. */
export function pipelineYaml({
  service = '',
  extract = '',
  load = '',
  transform = '',
  domains = DOMAINS,
  pageSize = 40,
  concurrency = 2,
}: PipelineParts = {}): string {
  return `
name: network
service: { base_url: "\${SPILLWAY_BASE_URL}", requests_per_second: 1000, basic_requests_per_second: 1000, ${service} }
extract: { domains: [${domains.join(', ')}], page_size: ${pageSize}, concurrency: ${concurrency}, ${extract} }
transform: { max_quarantined: 100%, ${transform} }
load: { format: csv, path: out, ${load} }
`
}

export type World = {
  readonly sandbox: Sandbox
  readonly workspace: Workspace
  run(env?: Readonly<Record<string, string>>, args?: readonly string[]): Promise<Ended>
}

export async function world(options: SandboxOptions, yaml: string): Promise<World> {
  const sandbox = await startSandbox(options)
  const workspace = await newWorkspace(sandbox, yaml)
  return {
    sandbox,
    workspace,
    run: (env = {}, args = []) =>
      runCli({
        args: ['run', workspace.pipeline, '--json', ...args],
        cwd: workspace.folder,
        env: { ...workspace.env, SPILLWAY_API_KEY: sandbox.apiKey, ...env },
      }),
  }
}

export type Summary = {
  readonly status: string
  readonly partitions: { total: number; done: number; failed: number; pending: number }
  readonly rows: number
  readonly requests: number
  readonly retries: number
  readonly quarantined: number
}

export function summaryOf({ stdout }: Ended): Summary {
  return JSON.parse(stdout) as Summary
}

/** A key for every row of a data set, sorted. A doubled row has its key twice. */
export async function exportedRows(output: string): Promise<readonly string[]> {
  const rows: string[] = []
  for (const path of await shardPaths(output)) {
    const bytes = await readFile(join(output, path))
    const csv = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
    for (const record of parse(csv, { columns: true }) as Record<string, string>[]) {
      rows.push([record.query_value, record.id, record.imported_at, record.identity_name].join(' '))
    }
  }
  return rows.sort()
}

/** The same keys, made from the data of the sandbox. */
export function expectedRows(sandbox: Sandbox, domains = DOMAINS): readonly string[] {
  return domains
    .flatMap((fqdn) =>
      [...sandbox.expected({ query: { type: 'domain', fqdn } })].map((item) =>
        [fqdn, item.id, utc(item.imported_at), item.identity_name.toWellFormed()].join(' '),
      ),
    )
    .sort()
}

/** `2024-07-22T21:25:52.893439+02:00` → `2024-07-22T19:25:52.893439Z` */
function utc(time: string): string {
  const fraction = (/\.(\d+)/.exec(time)?.[1] ?? '').padEnd(6, '0')
  return `${new Date(time).toISOString().slice(0, 19)}.${fraction}Z`
}
