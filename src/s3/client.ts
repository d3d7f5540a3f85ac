import { homedir } from 'node:os'
import type { S3Client } from '@aws-sdk/client-s3'
import { loadSdk, plainHttp, STORE_ATTEMPTS } from '../bucket/index.ts'
import { type DataSetLocation, ExportError, isLoopback } from '../core/index.ts'
import { proxyAgents } from '../http/index.ts'

export type BucketLocation = Extract<DataSetLocation, { kind: 's3' }>

/** Loaded on first use: that takes 0.2 s. */
export type Sdk = typeof import('@aws-sdk/client-s3')

export type Client = { readonly sdk: Sdk; readonly s3: S3Client }

const CONNECT_MS = 10_000
// As the SDK opens them by itself.
const CONNECTIONS = 50
const IDLE_MS = 60_000
const REQUEST_MS = 180_000

/** Credentials come from the AWS default chain. @throws ExportError `config` without the SDK, or for a wrong address */
export async function openClient({
  endpoint,
  region,
  pathStyle,
  allowHttp,
}: BucketLocation): Promise<Client> {
  const sdk = await loadSdk('@aws-sdk/client-s3', () => import('@aws-sdk/client-s3'))
  requireHome()
  const { address, source } = addressOf(endpoint)
  const where = region ?? (process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION || null)
  // Other stores than AWS ignore the region, but a signature needs one.
  const signedFor = where ?? (address === null ? null : 'us-east-1')
  const s3 = new sdk.S3Client({
    ...(address === null ? {} : { endpoint: address }),
    ...(signedFor === null ? {} : { region: signedFor }),
    forcePathStyle: pathStyle ?? address !== null,
    followRegionRedirects: true,
    maxAttempts: STORE_ATTEMPTS,
    // Each body has its MD5 and, in the signature, its SHA-256. Not all stores know further checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: IDLE_MS,
      requestTimeout: REQUEST_MS,
      throwOnRequestTimeout: true,
      ...proxyAgents(CONNECTIONS),
    },
  })
  if (!allowHttp) refuseHttp(s3, source)
  return { sdk, s3 }
}

/** The SDK looks for `~/.aws`, and fails for a user without a home. Container runtimes set the same. */
function requireHome(): void {
  try {
    homedir()
  } catch {
    process.env.HOME = '/'
  }
}

/** null: that of `~/.aws`, or AWS. @throws ExportError `config` when a variable holds no URL */
function addressOf(endpoint: string | null) {
  if (endpoint !== null) return { address: endpoint, source: 'load.s3.endpoint' }
  for (const name of ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL']) {
    const address = process.env[name]
    if (!address) continue
    if (/^https?:\/\/[^/]/i.test(address) && URL.canParse(address)) return { address, source: name }
    throw new ExportError({
      kind: 'config',
      what: `${name} is no http or https URL`,
      where: name,
      next: 'Set it to a URL such as https://s3.example.com, or name the store in load.s3.endpoint.',
    })
  }
  return { address: null, source: 'endpoint_url in ~/.aws/config' }
}

/** Checks every request, since an address may come from `~/.aws`, and stores may redirect to another one. */
function refuseHttp(s3: S3Client, source: string): void {
  s3.middlewareStack.add(
    (next) => (args) => {
      const { protocol, hostname } = args.request as { protocol: string; hostname: string }
      if (protocol === 'http:' && !isLoopback(hostname, { subdomains: true })) {
        throw plainHttp(source, 'Use an https address, or permit it with load.s3.allow_http: true.')
      }
      return next(args)
    },
    { step: 'finalizeRequest', name: 'refuseHttp', priority: 'high' },
  )
}
