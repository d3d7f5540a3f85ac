/**
 * `node guard.mjs <folder>`: waits until its standard input ends. That happens when its parent process closes it or
 * ends, even by SIGKILL. Then it stops the PostgreSQL server of the cluster `<folder>/data` and removes the folder.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const [folder] = process.argv.slice(2)
const pidFile = join(folder, 'data/postmaster.pid')

process.stdin.resume().once('close', async () => {
  for (let tries = 0; existsSync(pidFile) && tries < 100; tries++) {
    // SIGQUIT requests an immediate shutdown; SIGKILL forces it after ten seconds.
    signal(tries < 99 ? 'SIGQUIT' : 'SIGKILL')
    await wait(100)
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 50 })
})

function signal(name) {
  try {
    process.kill(Number(readFileSync(pidFile, 'utf8').split('\n', 1)[0]), name)
  } catch {
    // The server has ended already.
  }
}
