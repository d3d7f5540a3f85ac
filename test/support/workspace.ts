import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchFolder } from './at-the-end.ts'
import { carryOut } from './in-this-process.ts'
import { manifestShape, summaryShape } from './json-shapes.ts'
import { readRows } from './read-shards.ts'
import { expectedOfDomains, expectSame, type Row } from './rows.ts'
import { type Ended, type Running, start } from './run-cli.ts'
import { type LoggedRequest, type Sandbox, type SandboxOptions, searchesOf, startSandbox } from './sandbox.ts'

type Section = Readonly<Record<string, unknown>>

/** The settings of a pipeline that a test needs; the others have defaults. */
export type PipelineParts = {
  readonly name?: string
  readonly service?: Section
  readonly extract?: Section
  readonly transform?: Section
  readonly load?: Section
}

export type Environment = Readonly<Record<string, string>>

export type Workspace = {
  readonly folder: string
  readonly output: string
  readonly sandbox: Sandbox
  readonly env: Environment
  /** Carries out a command line in the folder. */
  cli(...words: string[]): Promise<Ended>
  call(command: string, ...flags: string[]): Promise<Ended>
  start(...words: string[]): Running
  /** `run --json` on the pipeline, and the summary that it printed. */
  run(...flags: string[]): Promise<Ended & { readonly summary: Summary }>
  /** A command on the pipeline that prints one JSON value. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever JSON was printed
  json(command: string, ...flags: string[]): Promise<Ended & { readonly value: any }>
  /** Replaces the pipeline file, or writes another one. */
  write(parts: PipelineParts, file?: string): Promise<void>
  manifest(): Promise<Manifest>
  rows(): Promise<Row[]>
  /** Requires exactly these rows in the data set. */
  expectExactly(rows: readonly Row[]): Promise<void>
  /** Requires exactly the rows that the service has for some domains. */
  expectRows(domains: readonly string[], expected?: Parameters<typeof expectedOfDomains>[2]): Promise<void>
  searches(): readonly LoggedRequest[]
  /** Domain and first day of the windows that were searched, but for so many searches before. */
  searched(since: number): readonly string[]
  /** The same folder and sandbox with other variables. */
  with(env: Environment): Workspace
}

export type Summary = ReturnType<typeof summaryShape.parse>
export type Manifest = ReturnType<typeof manifestShape.parse>

export const PIPELINE = 'pipeline.yaml'

/** Rows of a year for each of two domains, and no limits. */
export const SMALL: SandboxOptions = {
  records: 150,
  domains: ['scatterholt.com', 'quillmere.net'],
  nastyRate: 0.3,
  nullRate: 0.1,
}

/** Windows of a month each, from the beginning of the year of the rows. */
export const monthsUntil = (until: string) => ({ from: '2024-01-01', until, every: 'month' }) as const

/** A folder with a pipeline file that points at a new sandbox. Both are removed when the tests of the file are done. */
export async function newWorkspace(
  parts: PipelineParts,
  options: SandboxOptions = {},
  env: Environment = {},
): Promise<Workspace> {
  return workspaceFor(await startSandbox({ ...SMALL, ...options }), parts, env)
}

/** The same with an existing sandbox. @param carry how commands are carried out */
export async function workspaceFor(
  sandbox: Sandbox,
  parts: PipelineParts,
  env: Environment = {},
  carry = carryOut,
): Promise<Workspace> {
  const access = { SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token }
  const here = workspaceIn(scratchFolder(), sandbox, { ...access, ...env }, carry)
  await here.write(parts)
  return here
}

function workspaceIn(folder: string, sandbox: Sandbox, env: Environment, carry: typeof carryOut): Workspace {
  const here: Workspace = {
    folder,
    output: join(folder, 'out'),
    sandbox,
    env,
    cli: (...words) => carry({ args: words, cwd: folder, env: here.env }),
    call: (command, ...flags) => here.cli(command, PIPELINE, ...flags),
    start: (...words) => start(words, folder, here.env),
    async run(...flags) {
      const ended = await here.call('run', '--json', ...flags)
      return {
        ...ended,
        get summary() {
          return summaryShape.parse(parsed(ended))
        },
      }
    },
    async json(command, ...flags) {
      const ended = await here.call(command, '--json', ...flags)
      return { ...ended, value: parsed(ended) }
    },
    write: (parts, file = PIPELINE) => writeFile(join(folder, file), pipelineText(parts)),
    manifest: async () =>
      manifestShape.parse(JSON.parse(await readFile(join(here.output, '_manifest.json'), 'utf8'))),
    rows: () => readRows(here.output),
    expectExactly: async (rows) => expectSame(await here.rows(), rows),
    expectRows: (domains, expected) => here.expectExactly(expectedOfDomains(sandbox, domains, expected)),
    searches: () => searchesOf(sandbox.requests),
    searched: (since) => [...new Set(here.searches().slice(since).map(windowOf))].sort(),
    with: (more) => workspaceIn(folder, sandbox, { ...here.env, ...more }, carry),
  }
  return here
}

function windowOf({ body }: LoggedRequest): string {
  const { query, filters } = body as { query: { fqdn: string }; filters: { imported_at: { gte: string } } }
  return `${query.fqdn} ${filters.imported_at.gte.slice(0, 10)}`
}

/** A pipeline file; JSON is YAML. */
export function pipelineText({ name = 'trial', ...parts }: PipelineParts): string {
  const { service, extract = { domains: ['scatterholt.com'] }, transform, load } = parts
  const rates = { requests_per_second: 1000, basic_requests_per_second: 1000 }
  const file = {
    name,
    service: { base_url: '${SPILLWAY_BASE_URL}', ...rates, ...service },
    extract,
    // Sandboxes of tests send more broken items than a service should.
    transform: { ...(transform?.on_invalid === 'fail' ? {} : { max_quarantined: '100%' }), ...transform },
    load: { path: 'out', ...load },
  }
  return JSON.stringify(file, null, 2)
}

function parsed({ stdout, stderr }: Ended) {
  try {
    return JSON.parse(stdout)
  } catch (cause) {
    throw new Error(`stdout is not one JSON value:\n${stdout}\n${stderr}`, { cause })
  }
}
