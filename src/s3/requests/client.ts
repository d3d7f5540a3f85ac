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
 * @throws ExportError `config` when the SDK is not installed
 */
export async function openClient({ endpoint, region, pathStyle }: BucketPlace): Promise<Client> {
  const sdk = await loadSdk()
  const address = endpoint ?? (process.env.AWS_ENDPOINT_URL_S3 || process.env.AWS_ENDPOINT_URL || null)
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
  return { sdk, s3 }
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
