import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut } from '../support/in-this-process.ts'
import { THOROUGH } from '../support/thorough.ts'
import { type Exchange, type HostileService, startService } from './hostile-service.ts'
import { CLI } from './support.ts'

export type Outcome = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Largest resident set that was seen; 0 where memory is not watched. */
  readonly peakMb: number
}

export type Attack = {
  readonly folder: string
  readonly output: string
  readonly service: HostileService
  readonly pipeline: string
  call(args: readonly string[]): Promise<Outcome>
}

export type AttackOptions = {
  readonly service?: string
  readonly extract?: string
  readonly load?: string
  readonly transform?: string
  readonly env?: Readonly<Record<string, string>>
  /** Whether the memory of the commands is watched. Each command is then a process. */
  readonly watched?: boolean
}

/** A pipeline that points at a hostile service. */
export async function startAttack(
  respond: (exchange: Exchange) => void,
  {
    service: settings = '',
    extract = '',
    load = '',
    transform = '',
    env = {},
    watched = false,
  }: AttackOptions = {},
): Promise<Attack> {
  const service = await startService(respond)
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
    async call(args) {
      if (!THOROUGH && !watched)
        return { peakMb: 0, ...(await carryOut({ args, cwd: folder, env: variables })) }
      const child = spawn(process.execPath, [CLI, ...args], {
        cwd: folder,
        env: { PATH: process.env.PATH ?? '', ...variables },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let stdout = ''
      let stderr = ''
      let peakMb = 0
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text
      })
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr += text
      })
      const watch = setInterval(() => {
        // Where there is no /proc, memory is not watched.
        void readFile(`/proc/${child.pid}/status`, 'utf8').then(
          (status) => {
            peakMb = Math.max(peakMb, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024)
          },
          () => {},
        )
      }, 25)
      return new Promise((resolve, reject) => {
        child.on('error', reject)
        child.on('close', (code) => {
          clearInterval(watch)
          resolve({ code, stdout, stderr, peakMb })
        })
      })
    },
  }
}

/** One run against a hostile service. */
export async function attack(respond: (exchange: Exchange) => void, options: AttackOptions = {}) {
  const { call, pipeline, service } = await startAttack(respond, options)
  const outcome = await call(['run', pipeline, '--json'])
  return { ...outcome, requests: service.requests.length }
}
