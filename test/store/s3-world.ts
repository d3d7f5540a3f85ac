import { CreateBucketCommand, PutObjectCommand, paginateListObjectsV2, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, vi } from 'vitest'
import type { DataSetLocation, Store } from '../../src/core/index.ts'
import { CREDENTIALS, REGION, type S3Server, type S3ServerKind } from '../s3/servers.ts'
import type { BucketWorld } from './conformance/buckets-of-others.ts'

type S3Location = Extract<DataSetLocation, { kind: 's3' }>

/**
 * Locations in a bucket, each with a prefix of its own. The server runs for as long as the enclosing tests; credentials
 * are in the environment, as users have them.
 */
export function s3World(kind: S3ServerKind, openStore: (location: S3Location) => Store): () => BucketWorld {
  const bucket = 'exports'
  let server: S3Server
  let client: S3Client
  let worlds = 0

  beforeAll(async () => {
    vi.stubEnv('AWS_PROFILE', undefined)
    vi.stubEnv('AWS_SESSION_TOKEN', undefined)
    vi.stubEnv('AWS_ACCESS_KEY_ID', CREDENTIALS.accessKeyId)
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', CREDENTIALS.secretAccessKey)
    server = await kind.start()
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
      open: () => openStore(location),
      openAt: (other) => openStore({ ...location, endpoint: other }),
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
