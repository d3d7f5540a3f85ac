/**
 * `node guard.mjs <folder>`: waits until its standard input ends, which it does when whoever started it closes it or is
 * gone, be it by SIGKILL; then ends the PostgreSQL server whose cluster lies in `<folder>/data` and removes the folder.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const [folder] = process.argv.slice(2)
const pidFile = join(folder, 'data/postmaster.pid')

process.stdin.resume().once('close', async () => {
  for (let tries = 0; existsSync(pidFile) && tries < 100; tries++) {
    // At once, and after ten seconds as nobody can refuse.
    signal(tries < 99 ? 'SIGQUIT' : 'SIGKILL')
    await wait(100)
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 50 })
})

function signal(name) {
  try {
    process.kill(Number(readFileSync(pidFile, 'utf8').split('\n', 1)[0]), name)
  } catch {
    // It is gone already.
  }
}
