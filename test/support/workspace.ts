import { mkdtempSync, rmSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { carryOut } from './in-this-process.ts'
import { manifestShape, summaryShape } from './json-shapes.ts'
import { readCsv, readParquet, shardPaths } from './read-shards.ts'
import { difference, expectedOfDomains, SAME } from './rows.ts'
import type { Ended } from './run-cli.ts'
import { type LoggedRequest, type Sandbox, type SandboxOptions, startSandbox } from './sandbox.ts'

/** One section of a pipeline file. */
type Section = Readonly<Record<string, unknown>>

/** The settings of a pipeline that a test needs; the others have defaults. */
export type PipelineParts = {
  readonly name?: string
  readonly service?: Section
  readonly extract?: Section
  readonly transform?: Section
  readonly load?: Section
  readonly state?: Section
}

export type Environment = Readonly<Record<string, string>>

export type Workspace = {
  readonly folder: string
  /** The data set. */
  readonly output: string
  readonly sandbox: Sandbox
  readonly env: Environment
  /** Runs the command with these arguments in the folder. */
  cli(...words: string[]): Promise<Ended>
  /** `run --json` on the pipeline, and the summary that it printed. */
  run(...flags: string[]): Promise<Ended & { readonly summary: Summary }>
  /** A command on the pipeline that prints one JSON value. */
  json(command: string, ...flags: string[]): Promise<Ended & { readonly value: unknown }>
  /** Replaces the pipeline file. */
  write(parts: PipelineParts): Promise<void>
  manifest(): Promise<Manifest>
  /** Compares the rows of the data set with those that the service has for some domains. */
  expectRows(domains: readonly string[], expected?: Parameters<typeof expectedOfDomains>[2]): Promise<void>
  /** Searches that the sandbox has seen. */
  searches(): readonly LoggedRequest[]
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
  requestsPerSecond: 0,
  basicRequestsPerSecond: 0,
}

/** A folder with a pipeline file that points at a new sandbox. Both are removed when the test ends. */
export async function newWorkspace(
  parts: PipelineParts,
  options: SandboxOptions = {},
  env: Environment = {},
): Promise<Workspace> {
  const sandbox = await startSandbox({ ...SMALL, ...options })
  onTestFinished(() => sandbox.close())
  return workspaceFor(sandbox, parts, env)
}

/** The same with an existing sandbox. */
export async function workspaceFor(
  sandbox: Sandbox,
  parts: PipelineParts,
  env: Environment = {},
): Promise<Workspace> {
  const folder = temporaryFolder()
  const here: Workspace = {
    folder,
    output: join(folder, 'out'),
    sandbox,
    env: { SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token, ...env },
    cli: (...words) => carryOut({ args: words, cwd: folder, env: here.env }),
    async run(...flags) {
      const ended = await here.cli('run', PIPELINE, '--json', ...flags)
      return {
        ...ended,
        get summary() {
          return summaryShape.parse(parsed(ended))
        },
      }
    },
    async json(command, ...flags) {
      const ended = await here.cli(command, PIPELINE, '--json', ...flags)
      return { ...ended, value: parsed(ended) }
    },
    write: (changed) => writeFile(join(folder, PIPELINE), pipelineText(changed)),
    manifest: async () =>
      manifestShape.parse(JSON.parse(await readFile(join(here.output, '_manifest.json'), 'utf8'))),
    async expectRows(domains, expected) {
      const isCsv = (await shardPaths(here.output)).some((path) => path.includes('.csv'))
      const rows = await (isCsv ? readCsv : readParquet)(here.output)
      expect(difference(rows, expectedOfDomains(sandbox, domains, expected))).toEqual(SAME)
    },
    searches: () => sandbox.requests.filter(({ kind }) => kind === 'search'),
  }
  await here.write(parts)
  return here
}

/** A folder that is removed when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-e2e-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A pipeline file; JSON is YAML. */
export function pipelineText({
  name = 'trial',
  service,
  extract,
  transform,
  load,
  state,
}: PipelineParts): string {
  return JSON.stringify(
    {
      name,
      service: {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the file's own
        base_url: '${SPILLWAY_BASE_URL}',
        requests_per_second: 1000,
        basic_requests_per_second: 1000,
        ...service,
      },
      extract: { ...(extract === undefined ? { domains: ['scatterholt.com'] } : extract) },
      // Sandboxes of tests send more broken items than a service should.
      transform: { ...(transform?.on_invalid === 'fail' ? {} : { max_quarantined: '100%' }), ...transform },
      load: { path: 'out', ...load },
      ...(state === undefined ? {} : { state }),
    },
    null,
    2,
  )
}

function parsed({ stdout, stderr }: Ended): unknown {
  try {
    return JSON.parse(stdout)
  } catch (cause) {
    throw new Error(`stdout is not one JSON value:\n${stdout}\n${stderr}`, { cause })
  }
}
