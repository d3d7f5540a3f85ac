import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { portOf } from '../support/listening.ts'
import { some } from '../support/thorough.ts'
import { start, trial, writePipeline } from './spillway.ts'

// The documented limit; each wait below is much longer.
const LIMIT_MS = 10_000

/** A server that accepts every connection and never responds. */
async function silentServer(): Promise<{ readonly port: number; readonly reached: () => boolean }> {
  let isReached = false
  const server = createServer((socket) => {
    isReached = true
    socket.on('error', () => {})
  })
  return { port: await portOf(server), reached: () => isReached }
}

/** The largest delay of timers at the moment: everything else may be as late on a busy machine. */
function lateness(): () => number {
  let [worstMs, lastMs] = [0, performance.now()]
  const timer = setInterval(() => {
    const nowMs = performance.now()
    worstMs = Math.max(worstMs, nowMs - lastMs - 20)
    lastMs = nowMs
  }, 20)
  onTestFinished(() => clearInterval(timer))
  return () => worstMs
}

type Waiting = {
  readonly args: readonly string[]
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  /** Whether the process waits by now. */
  readonly isWaiting: (stderr: string) => boolean
}

const WAITS: Record<string, () => Promise<Waiting>> = {
  async 'another run to give up its lock'() {
    const { sandbox, folder, file, env } = await trial(
      { rest: 'load: { path: out }' },
      { faults: [{ kind: 'hang' }] },
    )
    const other = start(['run', file], folder, env)
    await other.until(() => sandbox.requests.length > 0)
    other.child.kill('SIGKILL')
    await other.result
    // As if another machine held it, whose processes cannot be checked from here.
    const state = join(folder, 'out/_state')
    const lock = join(state, readdirSync(state).find((name) => name.startsWith('lock'))!)
    const text = readFileSync(lock, 'utf8')
    const changed = text.replaceAll(
      /"(?:boot|boot_id|host)":"[^"]*"/g,
      (part) => `${part.slice(0, -1)}-other"`,
    )
    expect(changed).not.toBe(text)
    writeFileSync(lock, changed)
    return { args: ['run', file], folder, env, isWaiting: (stderr) => /lock|another run/i.test(stderr) }
  },
  async 'a token to be exchanged'() {
    const { port, reached } = await silentServer()
    const folder = scratchFolder()
    const service = `  token_url: http://127.0.0.1:${port}/token\n  api_key_env: SPILLWAY_API_KEY`
    const file = await writePipeline(folder, { service })
    const env = { SPILLWAY_BASE_URL: `http://127.0.0.1:${port}`, SPILLWAY_API_KEY: 'a-key-of-some-length' }
    return { args: ['run', file], folder, env, isWaiting: reached }
  },
  async 'object storage to respond'() {
    const { port, reached } = await silentServer()
    const folder = scratchFolder()
    const endpoint = `{ endpoint: 'http://127.0.0.1:${port}', region: eu-central-1, path_style: true }`
    const file = await writePipeline(folder, { rest: `load: { path: 's3://bucket/acme', s3: ${endpoint} }` })
    const env = {
      SPILLWAY_BASE_URL: 'http://127.0.0.1:9',
      SPILLWAY_TOKEN: 'token',
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret-of-some-length',
      HOME: folder,
    }
    return { args: ['run', file], folder, env, isWaiting: reached }
  },
  async 'a database to respond'() {
    const { port, reached } = await silentServer()
    const { folder, file, env: access, call } = await trial({ rest: 'load: { path: out }' })
    const env = { ...access, PGPASSWORD: 'password' }
    expect((await call('run', file)).code).toBe(0)
    const args = ['load', file, '--to', `postgres://etl@127.0.0.1:${port}/leaks?sslmode=disable`]
    return { args, folder, env, isWaiting: reached }
  },
}

it.each(some(Object.entries(WAITS), 2))(
  'a wait for %s ends within ten seconds of a signal',
  async (_, begin) => {
    const { args, folder, env, isWaiting } = await begin()
    const running = start(args, folder, env)
    await running.until(isWaiting)
    const lateMs = lateness()
    const startedMs = performance.now()
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.result
    expect(performance.now() - startedMs, stderr).toBeLessThan(LIMIT_MS + 5 * lateMs())
    expect(code, stderr).toBe(143)
    expect(stderr).not.toMatch(/unexpected error|\n\s+at /)
  },
)
