import { THOROUGH } from '../support/thorough.ts'
import { startS3Double } from './double/server.ts'
import { hasMoto, startMoto } from './moto.ts'

export type S3Server = { readonly endpoint: string; close(): Promise<void> }

export type S3ServerKind = {
  readonly name: string
  /** Whether this machine has it. */
  readonly isThere: boolean
  readonly isDouble: boolean
  start(): Promise<S3Server>
}

export const REGION = 'eu-central-1'
/** Those that the double knows; the other one takes any. */
export const CREDENTIALS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'made/up+for=tests' }

// So few names a page that every listing of some length has several.
const PAGE = 7

/** Everything that stands for S3 here: our double, and a server that others have made, where there is one. */
export const S3_SERVERS: readonly S3ServerKind[] = [
  {
    name: 'the double',
    isThere: true,
    isDouble: true,
    start: () => startS3Double({ region: REGION, credentials: [CREDENTIALS], limits: { page: PAGE } }),
  },
  {
    name: hasMoto ? 'moto_server' : 'moto_server (not on the PATH)',
    // It is another process, and slow: `npm test` makes do with the servers that npm has.
    isThere: hasMoto && THOROUGH,
    isDouble: false,
    start: startMoto,
  },
]
