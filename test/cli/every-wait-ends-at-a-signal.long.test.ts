import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { portOf } from '../support/listening.ts'
import { some } from '../support/thorough.ts'
import { PIPELINE, type Workspace } from '../support/workspace.ts'
import { trial } from './trial.ts'

// The documented limit; each wait below is much longer.
const LIMIT_MS = 10_000

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
  readonly here: Workspace
  readonly args?: readonly string[]
  /** Whether the process waits by now. */
  readonly isWaiting: (stderr: string) => boolean
}

const WAITS: Record<string, () => Promise<Waiting>> = {
  async 'another run to give up its lock'() {
    const here = await trial({}, { faults: [{ kind: 'hang' }] })
    const other = here.start('run', PIPELINE)
    await other.until(() => here.sandbox.requests.length > 0)
    other.child.kill('SIGKILL')
    await other.result
    // As if another machine held it, whose processes cannot be checked from here.
    const state = join(here.output, '_state')
    const lock = join(state, readdirSync(state).find((name) => name.startsWith('lock'))!)
    const text = readFileSync(lock, 'utf8')
    const changed = text.replaceAll(/"(?:boot|boot_id|host)":"[^"]*(?=")/g, '$&-other')
    expect(changed).not.toBe(text)
    writeFileSync(lock, changed)
    return { here, isWaiting: (stderr) => /lock|another run/i.test(stderr) }
  },
  async 'a token to be exchanged'() {
    const { port, reached } = await silentServer()
    const service = { token_url: `http://127.0.0.1:${port}/token`, api_key_env: 'SPILLWAY_API_KEY' }
    const env = { SPILLWAY_BASE_URL: `http://127.0.0.1:${port}`, SPILLWAY_API_KEY: 'a-key-of-some-length' }
    return { here: await trial({ service }, {}, env), isWaiting: reached }
  },
  async 'object storage to respond'() {
    const { port, reached } = await silentServer()
    const s3 = { endpoint: `http://127.0.0.1:${port}`, region: 'eu-central-1', path_style: true }
    const env = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret-of-some-length' }
    return { here: await trial({ load: { path: 's3://bucket/acme', s3 } }, {}, env), isWaiting: reached }
  },
  async 'a database to respond'() {
    const { port, reached } = await silentServer()
    const here = await trial()
    expect((await here.call('run')).code).toBe(0)
    const args = ['load', PIPELINE, '--to', `postgres://etl@127.0.0.1:${port}/leaks?sslmode=disable`]
    return { here: here.with({ PGPASSWORD: 'password' }), args, isWaiting: reached }
  },
}

it.each(some(Object.entries(WAITS), 2))(
  'a wait for %s ends within ten seconds of a signal',
  async (_, begin) => {
    const { here, args = ['run', PIPELINE], isWaiting } = await begin()
    const running = here.start(...args)
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
