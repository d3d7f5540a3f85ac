import { readCsv } from '../support/read-shards.ts'
import { expectedOfDomains, expectSame } from '../support/rows.ts'
import { type Sandbox, type SandboxOptions, startSandbox } from '../support/sandbox.ts'
import type { Exchange, Item } from './hostile-service.ts'
import { type Ended, newWorkspace, runCli, type Workspace } from './support.ts'

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

export async function expectRows({ sandbox, workspace }: World, domains = DOMAINS): Promise<void> {
  const rows = await readCsv(workspace.output)
  expectSame(rows, expectedOfDomains(sandbox, domains))
}

/** Ids of the exported rows, in order. */
export async function exportedIds({ workspace }: World): Promise<readonly number[]> {
  return (await readCsv(workspace.output)).map(({ id }) => Number(id)).sort((a, b) => a - b)
}

/**
 * A service with these items, in the order of their times.
 * @param back how many items before the index that its cursor names each page begins
 */
export function serviceOf(items: readonly Item[], back = 0): (exchange: Exchange) => void {
  return ({ body, json }) => {
    const { gte = '0', lte = '9' } = body.filters?.imported_at ?? {}
    const found = items.filter(({ imported_at }) => {
      const at = new Date(String(imported_at)).getTime()
      return (gte === '0' || at >= Date.parse(gte)) && (lte === '9' || at <= Date.parse(lte))
    })
    if (body.order === 'desc') found.reverse()
    const start = Number(String(body.from ?? '0').split('~')[0])
    const end = start + body.size
    json({
      items: found.slice(Math.max(0, start - back), end),
      // It names its range, so it is valid only there.
      next: end < found.length ? `${end}~${gte}~${lte}` : null,
    })
  }
}
