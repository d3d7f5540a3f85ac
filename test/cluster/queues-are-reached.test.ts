import { createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openQueue, type Queue } from '../../src/cluster/index.ts'
import { systemClock } from '../../src/core/index.ts'
import { refusal } from '../disk/errors.ts'
import { CERTIFICATE_PATH as PEM } from '../e2e/support/proxy.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { portOf } from '../support/listening.ts'
import { PASSWORD } from '../support/postgres/client.ts'
import { newDatabase } from '../support/postgres/database.ts'
import { elsewhere, front } from '../support/postgres/front.ts'
import { startPostgres } from '../support/postgres/server.mjs'
import { start } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { until, world } from './support/world.ts'

const open = (url: string, password: string | null = null): Promise<Queue> =>
  openQueue(url, { clock: systemClock, password, warn: () => {} })

async function reach(url: string, password: string | null = null): Promise<void> {
  await (await open(url, password)).close()
}

const failure = (...given: Parameters<typeof reach>) => refusal(reach(...given))

type Spoken = { readonly port: number; readonly commands: readonly (readonly string[])[] }

/** Speaks enough of Redis for a queue to be opened, and keeps what it is told. */
async function redisDouble(denied: () => readonly string[] = () => []): Promise<Spoken> {
  const commands: string[][] = []
  const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`
  const port = await portOf(
    createServer((socket) => {
      socket.on('error', () => {})
      let text = ''
      socket.setEncoding('utf8').on('data', (more: string) => {
        text += more
        for (;;) {
          // How many words, and before each its length.
          const [count = '', ...lines] = text.split('\r\n')
          const end = 2 * Number(count.slice(1))
          if (lines.length <= end) return
          const words = lines.slice(0, end).filter((_, i) => i % 2 === 1)
          text = lines.slice(end).join('\r\n')
          commands.push(words)
          const name = words[0]?.toLowerCase()
          if (denied().includes(name ?? ''))
            socket.write(`-NOPERM User worker has no permissions to run the '${name}' command\r\n`)
          else if (name === 'info')
            socket.write(bulk('redis_version:7.2.0\r\nmaxmemory_policy:noeviction\r\n'))
          else if (name === 'time') socket.write(`*2\r\n${bulk('1700000000')}${bulk('250000')}`)
          // There are no jobs.
          else if (name?.startsWith('eval')) socket.write('*0\r\n')
          else if (name === 'bzpopmin') setTimeout(() => socket.write('*-1\r\n'), 50)
          else socket.write('+OK\r\n')
        }
      })
      onTestFinished(() => void socket.destroy())
    }),
  )
  return { port, commands }
}

it.each(['info', 'eval', 'bzpopmin'])('a user of Redis without %s is told at the start', async (name) => {
  const { port } = await redisDouble(() => [name])
  const refused = {
    kind: 'target',
    what: `The user of the queue may not do what it is needed for: ${name.toUpperCase()} (NOPERM)`,
    next: expect.stringContaining('ACL SETUSER'),
  }
  expect(await failure(`redis://127.0.0.1:${port}`)).toMatchObject(refused)
  // A worker does not wait for it either.
  const worker = start(['worker'], scratchFolder(), { SPILLWAY_QUEUE_URL: `redis://127.0.0.1:${port}` })
  expect(await worker.result).toMatchObject({ code: 1, stderr: expect.stringContaining(refused.what) })
})

it('a right that is taken away later ends the worker', async () => {
  let denied: readonly string[] = []
  const { port, commands } = await redisDouble(() => denied)
  const worker = start(['worker'], scratchFolder(), { SPILLWAY_QUEUE_URL: `redis://127.0.0.1:${port}` })
  await worker.until((text) => text.includes('worker started'))
  await until('it asks for jobs', () => commands.some(([name]) => /^evalsha$/i.test(name ?? '')))
  denied = ['evalsha', 'eval', 'bzpopmin']
  expect(await worker.result).toMatchObject({ code: 1, stderr: expect.stringContaining('NOPERM') })
})

describe('to another machine nothing is sent in clear', () => {
  it('on Redis, unless the address says so', async () => {
    const { port, commands } = await redisDouble()
    expect(await failure(`redis://0.0.0.0:${port}`, 'queue-password')).toMatchObject({
      kind: 'config',
      what: 'redis:// is not encrypted, and nothing is sent to another machine in clear',
      next: expect.stringContaining('rediss://'),
    })
    expect(commands).toEqual([])
    await reach(`redis://0.0.0.0:${port}?sslmode=disable`)
    await reach(`redis://127.0.0.1:${port}`)
  })

  it('on PostgreSQL, unless the address says so', async () => {
    const url = (await newDatabase()).replace('postgres@', `postgres:${PASSWORD}@`)
    expect(await failure(elsewhere(url))).toMatchObject({
      kind: 'config',
      what: 'The server of the queue offers no TLS, and nothing is sent to another machine in clear',
      next: expect.stringContaining('sslmode=disable'),
    })
    await reach(`${elsewhere(url)}?sslmode=disable`)
    await reach(url)
  })

  it('and the certificate is checked', async () => {
    const behind = (await newDatabase()).replace('postgres@', `postgres:${PASSWORD}@`)
    const { url } = await front(behind, 'S')
    expect(await failure(elsewhere(url))).toMatchObject({
      kind: 'target',
      what: expect.stringMatching(/^The queue cannot be used \(\w*CERT\w*\)$/),
    })
    await reach(`${url}?sslmode=require&sslrootcert=${PEM}`)
  })
})

it.each([
  ['an address with a user', 'redis://reader@', ['reader', 'queue-password']],
  ['an address without one', 'redis://', ['queue-password']],
  ['not an address with a password of its own', 'redis://reader:own@', ['reader', 'own']],
])('on Redis the password of the environment is that of %s', async (_name, start, expected) => {
  const { port, commands } = await redisDouble()
  const queue = await open(`${start}127.0.0.1:${port}`, 'queue-password')
  expect(await queue.now()).toBe(1_700_000_000_250)
  await queue.close()
  const given = commands.filter(([name]) => name?.toLowerCase() === 'auth')
  expect(given).not.toEqual([])
  for (const [, ...words] of given) expect(words).toEqual(expected)
})

it.runIf(THOROUGH)('a worker that starts while the queue is away waits, and submit does not', async () => {
  const postgres = await startPostgres()
  onTestFinished(() => postgres.stop())
  const url = await postgres.database()
  const here = await world({ backend: 'postgres', url })
  await postgres.kill()
  const [worker, other] = [here.worker(), here.worker()]
  for (const each of [worker, other])
    await until('it waits', () => each.log().includes('does not respond (ECONNREFUSED)'))
  other.kill('SIGTERM')
  await other.ended
  expect(other.log()).not.toContain('worker started')
  expect((await here.submit()).code).toBe(1)
  await postgres.start()
  expect((await here.submit('--wait')).code, worker.log()).toBe(0)
})
