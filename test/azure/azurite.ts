import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob'
import { freePort } from '../support/free-port.mjs'
import { thoroughPath } from '../thorough/packages.mjs'

/** The account that every emulator has; its key is public. */
export const ACCOUNT = 'devstoreaccount1'
export const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='

export type Azurite = {
  readonly endpoint: string
  /** Another client of it. */
  readonly client: BlobServiceClient
  close(): Promise<void>
}

export async function startAzurite(): Promise<Azurite> {
  const main = thoroughPath('azurite/dist/src/blob/main.js')
  const port = await freePort()
  const child = spawn(
    process.execPath,
    [
      main,
      ...['--blobHost', '127.0.0.1', '--blobPort', String(port), '--inMemoryPersistence'],
      ...['--silent', '--skipApiVersionCheck', '--disableTelemetry'],
    ],
    { cwd: tmpdir(), stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('azurite ended')))
    child.stdout.on('data', (text: Buffer) => {
      if (text.toString().includes('successfully listen')) resolve()
    })
  })
  const endpoint = `http://127.0.0.1:${port}/${ACCOUNT}`
  return {
    endpoint,
    client: new BlobServiceClient(endpoint, new StorageSharedKeyCredential(ACCOUNT, KEY)),
    async close() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
