import { CreateBucketCommand, PutObjectCommand, paginateListObjectsV2, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, vi } from 'vitest'
import { bucketStore } from '../../src/bucket/index.ts'
import type { DataSetLocation } from '../../src/core/index.ts'
import { s3Driver } from '../../src/s3/index.ts'
import { startS3Double } from '../s3/double/server.ts'
import { startSecondServer } from '../s3/second-server.ts'
import { CREDENTIALS, REGION, type S3Server } from '../s3/servers.ts'
import { cases, THOROUGH } from '../support/thorough.ts'
import { type BucketWorld, bucketsOfOthers } from './conformance/buckets-of-others.ts'
import { storeConformance } from './conformance.ts'

const SERVERS: readonly (readonly [name: string, start: () => Promise<S3Server>, sequences: number])[] = [
  [
    'the double',
    // Small pages, so that even short listings have several.
    () => startS3Double({ page: 7 }),
    cases(25, 3),
  ],
  ...(THOROUGH ? [['fauxqs behind a gate', () => startSecondServer(true), cases(5, 1)] as const] : []),
]

describe.each(SERVERS)('%s', (_, start, sequences) => {
  const makeWorld = s3World(start)
  storeConformance('a store in a bucket', makeWorld, { sequences })
  bucketsOfOthers(makeWorld)
})

type S3Location = Extract<DataSetLocation, { kind: 's3' }>

/**
 * Locations in a bucket, each with a prefix of its own. The server runs for as long as the enclosing tests; credentials
 * are in the environment, as users have them.
 */
function s3World(start: () => Promise<S3Server>): () => BucketWorld {
  const bucket = 'exports'
  let server: S3Server
  let client: S3Client
  let worlds = 0

  beforeAll(async () => {
    vi.stubEnv('AWS_PROFILE', undefined)
    vi.stubEnv('AWS_SESSION_TOKEN', undefined)
    vi.stubEnv('AWS_ACCESS_KEY_ID', CREDENTIALS.accessKeyId)
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', CREDENTIALS.secretAccessKey)
    server = await start()
    const { endpoint } = server
    client = new S3Client({ endpoint, region: REGION, credentials: CREDENTIALS, forcePathStyle: true })
    await client.send(new CreateBucketCommand({ Bucket: bucket }))
  })
  afterAll(async () => {
    client?.destroy()
    await server?.close()
    vi.unstubAllEnvs()
  })

  return () => {
    const prefix = `team/data-set-${worlds++}`
    const { endpoint } = server
    const location: S3Location = {
      kind: 's3',
      bucket,
      prefix,
      endpoint,
      region: REGION,
      pathStyle: true,
      allowHttp: false,
    }
    return {
      endpoint,
      open: () => bucketStore(s3Driver(location)),
      openAt: (other) => bucketStore(s3Driver({ ...location, endpoint: other })),
      async markFolder(folder) {
        const Key = `${[prefix, folder].filter((part) => part !== '').join('/')}/`
        await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: new Uint8Array() }))
      },
      refuseTime(response) {
        response.writeHead(403, { 'content-type': 'application/xml' })
        response.end('<Error><Code>RequestTimeTooSkewed</Code><Message>too far apart</Message></Error>')
      },
      async names() {
        const names: string[] = []
        const pages = paginateListObjectsV2({ client }, { Bucket: bucket, Prefix: `${prefix}/` })
        for await (const { Contents } of pages) names.push(...(Contents?.map(({ Key = '' }) => Key) ?? []))
        return names
      },
    }
  }
}
