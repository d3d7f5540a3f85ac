import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { S3Server } from './servers.ts'

/** Whether `moto_server` is on the PATH: it is part of a Python package, which may not be installed. */
export const hasMoto = (process.env.PATH ?? '')
  .split(delimiter)
  .some((folder) => existsSync(join(folder, 'moto_server')))

/** Starts it on a free port of the loopback. It accepts any credentials and verifies no signature. */
export async function startMoto(): Promise<S3Server> {
  const child = spawn('moto_server', ['-H', '127.0.0.1', '-p', '0'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const endpoint = await addressOf(child)
  return {
    endpoint,
    async close() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    // Read as long as it runs: it logs every request there.
    child.stderr!.on('data', (chunk: Buffer) => {
      if (text.length < 10_000) text += chunk
      const address = /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(text)?.[1]
      if (address !== undefined) resolve(address)
    })
    child.once('exit', () => reject(new Error(`moto_server did not start: ${text}`)))
  })
}
