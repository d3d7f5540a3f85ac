import { THOROUGH } from '../support/thorough.ts'
import { startS3Double } from './double/server.ts'
import { hasMoto, startMoto } from './moto.ts'

export type S3Server = { readonly endpoint: string; close(): Promise<void> }

export type S3ServerKind = {
  readonly name: string
  readonly isThere: boolean
  readonly isDouble: boolean
  start(): Promise<S3Server>
}

export const REGION = 'eu-central-1'
/** Those that the double knows; the other server accepts any. */
export const CREDENTIALS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'made/up+for=tests' }

// Small pages, so that even short listings have several.
const PAGE = 7

/** All stand-ins for S3: our double, and a server that others maintain, if installed. */
export const S3_SERVERS: readonly S3ServerKind[] = [
  {
    name: 'the double',
    isThere: true,
    isDouble: true,
    start: () => startS3Double({ region: REGION, credentials: [CREDENTIALS], limits: { page: PAGE } }),
  },
  {
    name: hasMoto ? 'moto_server' : 'moto_server (not on the PATH)',
    // A separate process, and slow: `npm test` uses only the servers of npm.
    isThere: hasMoto && THOROUGH,
    isDouble: false,
    start: startMoto,
  },
]
