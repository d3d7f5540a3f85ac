import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut } from '../support/in-this-process.ts'
import { THOROUGH } from '../support/thorough.ts'
import { type Exchange, type HostileService, startService } from './hostile-service.ts'
import { type Ended, runCli } from './support.ts'

export type Outcome = Ended & {
  /** Largest resident set that was seen; 0 where memory is not watched. */
  readonly peakMb: number
}

export type Attack = {
  readonly folder: string
  readonly output: string
  readonly service: HostileService
  readonly pipeline: string
  /** @param env more variables for this command */
  call(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Outcome>
}

export type AttackOptions = {
  readonly service?: string
  readonly extract?: string
  readonly load?: string
  readonly transform?: string
  readonly env?: Readonly<Record<string, string>>
  /** Whether the memory of the commands is watched. Each command is then a process. */
  readonly watched?: boolean
  readonly testsTokens?: boolean
}

export async function startAttack(
  respond: (exchange: Exchange) => void,
  {
    service: settings = '',
    extract = '',
    load = '',
    transform = '',
    env = {},
    watched = false,
    testsTokens = false,
  }: AttackOptions = {},
): Promise<Attack> {
  const service = await startService(respond, testsTokens)
  const folder = scratchFolder()
  const pipeline = join(folder, 'pipeline.yaml')
  const retries = settings.includes('retries') ? '' : 'retries: 0,'
  const queries = /domains|queries|resource/.test(extract) ? '' : 'domains: [acme.example],'
  await writeFile(
    pipeline,
    `
name: hostile
service: { base_url: "${service.baseUrl}", requests_per_second: 1000, basic_requests_per_second: 1000, ${retries} ${settings} }
extract: { ${queries} ${extract} }
transform: { max_quarantined: 100%, ${transform} }
load: { ${load.includes('format:') ? '' : 'format: csv,'} path: out, ${load} }
`,
  )
  const variables = {
    SPILLWAY_TOKEN: 'token-of-the-hostile-tests',
    SPILLWAY_BASE_URL: service.baseUrl,
    ...env,
  }
  return {
    folder,
    output: join(folder, 'out'),
    service,
    pipeline,
    async call(args, more = {}) {
      const command = { args, cwd: folder, env: { ...variables, ...more } }
      if (!THOROUGH && !watched) return { peakMb: 0, ...(await carryOut(command)) }
      let peakMb = 0
      let watch: NodeJS.Timeout | undefined
      const ended = await runCli({
        ...command,
        onStart(_kill, pid) {
          watch = setInterval(() => {
            peakMb = Math.max(peakMb, peakOf(pid))
          }, 25)
        },
      })
      clearInterval(watch)
      return { ...ended, peakMb }
    },
  }
}

/** The peak memory of a process. Where there is no /proc, memory is not watched. */
function peakOf(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

export async function attack(respond: (exchange: Exchange) => void, options: AttackOptions = {}) {
  const { call, pipeline, service } = await startAttack(respond, options)
  const outcome = await call(['run', pipeline, '--json'])
  return { ...outcome, requests: service.requests.length }
}
