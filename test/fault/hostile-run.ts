import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Asked, type HostileService, startService } from './hostile-service.ts'
import { CLI } from './support.ts'

export type Outcome = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Largest resident set that was seen. */
  readonly peakMb: number
}

export type Attack = {
  readonly folder: string
  readonly output: string
  readonly service: HostileService
  readonly pipeline: string
  call(args: readonly string[]): Promise<Outcome>
  end(): Promise<void>
}

export type AttackOptions = {
  readonly service?: string
  readonly extract?: string
  readonly load?: string
  readonly transform?: string
  readonly env?: Readonly<Record<string, string>>
}

/** A pipeline that points at a service which means no good. */
export async function startAttack(
  answer: (asked: Asked) => void,
  { service: settings = '', extract = '', load = '', transform = '', env = {} }: AttackOptions = {},
): Promise<Attack> {
  const service = await startService(answer)
  const folder = await mkdtemp(join(tmpdir(), 'spillway-hostile-'))
  const pipeline = join(folder, 'pipeline.yaml')
  const retries = settings.includes('retries') ? '' : 'retries: 0,'
  const queries = /domains|queries|resource/.test(extract) ? '' : 'domains: [acme.example],'
  await writeFile(
    pipeline,
    `
name: hostile
service: { base_url: "${service.baseUrl}", requests_per_second: 1000, basic_requests_per_second: 1000, ${retries} ${settings} }
extract: { ${queries} ${extract} }
transform: { ${transform} }
load: { ${load.includes('format:') ? '' : 'format: csv,'} path: out, ${load} }
`,
  )
  return {
    folder,
    output: join(folder, 'out'),
    service,
    pipeline,
    call(args) {
      const child = spawn(process.execPath, [CLI, ...args], {
        cwd: folder,
        env: {
          PATH: process.env.PATH ?? '',
          SPILLWAY_TOKEN: 'token-of-the-hostile-tests',
          SPILLWAY_BASE_URL: service.baseUrl,
          ...env,
        },
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
    async end() {
      await service.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** For one run and nothing after it. */
export async function attack(answer: (asked: Asked) => void, options: AttackOptions = {}) {
  const { call, pipeline, service, end } = await startAttack(answer, options)
  try {
    const outcome = await call(['run', pipeline, '--json'])
    return { ...outcome, requests: service.asked.length }
  } finally {
    await end()
  }
}
