import type { S3Client } from '@aws-sdk/client-s3'
import { ExportError, type Place } from '../../core/index.ts'

export type BucketPlace = Extract<Place, { kind: 's3' }>

/** The SDK, loaded when it is needed: it takes 0.2 s, which no other pipeline should pay. */
export type Sdk = typeof import('@aws-sdk/client-s3')

export type Client = { readonly sdk: Sdk; readonly s3: S3Client }

// Six requests over some seconds get past what a store does when it is busy or moves.
const ATTEMPTS = 6
const CONNECT_MS = 10_000
const SILENCE_MS = 60_000
const REQUEST_MS = 180_000

/**
 * A client for the store of a data set. Credentials come from where all AWS tools take them: the environment, `~/.aws`,
 * web identities, containers and instances.
 * @throws ExportError `config` when the SDK is not installed, or the environment names no address that is one
 */
export async function openClient({ endpoint, region, pathStyle, allowHttp }: BucketPlace): Promise<Client> {
  const sdk = await loadSdk()
  trimEnvironment()
  const { address, source } = addressOf(endpoint)
  const where = region ?? (process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION || null)
  // Stores other than AWS's rarely care, but a signature needs one.
  const signedFor = where ?? (address === null ? null : 'us-east-1')
  const s3 = withoutAdvice(
    () =>
      new sdk.S3Client({
        ...(address === null ? {} : { endpoint: address }),
        ...(signedFor === null ? {} : { region: signedFor }),
        forcePathStyle: pathStyle ?? address !== null,
        followRegionRedirects: true,
        maxAttempts: ATTEMPTS,
        // Every body's SHA-256 is signed and so checked by the store; more than that not all stores understand.
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
        requestHandler: {
          connectionTimeout: CONNECT_MS,
          socketTimeout: SILENCE_MS,
          requestTimeout: REQUEST_MS,
          throwOnRequestTimeout: true,
        },
      }),
  )
  if (!allowHttp) refuseHttp(s3, source)
  return { sdk, s3 }
}

/** A line break at the end of a value, as secrets that come out of files have it, is never meant. */
function trimEnvironment(): void {
  for (const [name, value] of Object.entries(process.env)) {
    if (name.startsWith('AWS_') && value !== undefined && value !== value.trim()) {
      process.env[name] = value.trim()
    }
  }
}

/**
 * Where the store is, and what says so; null: as `~/.aws` has it, or AWS itself.
 * @throws ExportError `config` when a variable holds no URL
 */
function addressOf(endpoint: string | null): { readonly address: string | null; readonly source: string } {
  if (endpoint !== null) return { address: endpoint, source: 'load.s3.endpoint' }
  for (const name of ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL']) {
    const address = process.env[name]
    if (!address) continue
    if (/^https?:\/\/[^/]/i.test(address) && URL.canParse(address)) return { address, source: name }
    throw new ExportError(
      'config',
      `${name} is no http or https URL`,
      name,
      'Set it to a URL such as https://s3.example.com, or name the store in load.s3.endpoint.',
    )
  }
  return { address: null, source: 'endpoint_url in ~/.aws/config' }
}

/** Asked of each request, since an address may come out of `~/.aws`, and stores may send a client on to another one. */
function refuseHttp(s3: S3Client, source: string): void {
  s3.middlewareStack.add(
    (next) => (args) => {
      const { protocol, hostname } = args.request as { protocol: string; hostname: string }
      if (protocol === 'http:' && !isLoopback(hostname)) {
        throw new ExportError(
          'config',
          'Object storage is spoken to by plain http on another machine, so rows would travel unencrypted',
          source,
          'Use an https address, or permit it with load.s3.allow_http: true.',
        )
      }
      return next(args)
    },
    { step: 'finalizeRequest', name: 'refuseHttp', priority: 'high' },
  )
}

function isLoopback(hostname: string): boolean {
  return /^(?:(?:.+\.)?localhost|\[?::1\]?|127\.\d+\.\d+\.\d+)$/.test(hostname)
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import('@aws-sdk/client-s3')
  } catch (error) {
    throw new ExportError(
      'config',
      'Object storage needs the package @aws-sdk/client-s3, which is not installed',
      'load.path',
      'Install spillway with its optional dependencies, or run `npm install @aws-sdk/client-s3` beside it.',
      { cause: error },
    )
  }
}

const ADVICE = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'

/** Which Node.js later releases of the SDK will need is no news to those who run an export. */
function withoutAdvice<T>(make: () => T): T {
  const before = process.env[ADVICE]
  process.env[ADVICE] = 'true'
  try {
    return make()
  } finally {
    if (before === undefined) delete process.env[ADVICE]
    else process.env[ADVICE] = before
  }
}
