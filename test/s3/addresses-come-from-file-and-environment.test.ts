import { beforeEach, describe, expect, it, vi } from 'vitest'
import { refusal } from '../disk/errors.ts'
import { BUCKET } from '../support/bucket.ts'
import { runCli } from '../support/run-cli.ts'
import { type BucketLocation, eachInABucket } from './each-in-a-bucket.ts'

const here = eachInABucket()

beforeEach(() => {
  vi.stubEnv('AWS_PROFILE', undefined)
  vi.stubEnv('AWS_CONFIG_FILE', '/nowhere')
  vi.stubEnv('AWS_ENDPOINT_URL', undefined)
})

const open = (changes: Partial<BucketLocation> = {}) =>
  here.open({ endpoint: null, region: null, ...changes })

const refused = (changes?: Partial<BucketLocation>) => refusal(open(changes).list(''))

it.each(['localhost:9000', 'ftp://minio.example.com'])(
  '%s is no address, and the error names the variable',
  async (address) => {
    for (const name of ['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3']) {
      vi.stubEnv('AWS_ENDPOINT_URL_S3', undefined)
      vi.stubEnv(name, address)
      const error = await refused()
      expect(error).toMatchObject({ kind: 'config', where: name })
      expect(error.message).not.toContain(address)
    }
  },
)

describe('plain http to another machine', () => {
  it.each([
    ['load.s3.endpoint', { endpoint: 'http://minio.invalid:9000' }],
    ['AWS_ENDPOINT_URL', {}],
    ['AWS_ENDPOINT_URL_S3', {}],
  ])('by %s is refused before anything is sent', async (source, changes) => {
    vi.stubEnv('AWS_ENDPOINT_URL_S3', undefined)
    if (source.startsWith('AWS')) vi.stubEnv(source, 'http://minio.invalid:9000')
    const error = await refused(changes)
    expect(error).toMatchObject({ kind: 'config', where: source })
    expect(error.message).toContain('allow_http')
  })

  it('is accepted with allow_http, and to this machine without', async () => {
    const { port } = new URL(here.double.endpoint)
    expect(await open({ endpoint: `http://localhost:${port}` }).list('')).toEqual([])
    const reached = await refused({ endpoint: 'http://minio.invalid:9000', allowHttp: true })
    // This host does not exist: the request fails later.
    expect(reached).toMatchObject({ kind: 'storage' })
  })
})

it('a missing region is reported', async () => {
  for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_ENDPOINT_URL_S3']) vi.stubEnv(name, undefined)
  const error = await refused()
  expect(error).toMatchObject({
    kind: 'config',
    what: 'The bucket is in another region, or there is none set',
  })
  expect(error.next).toContain('AWS_REGION')
})

it('a user without a home, as in a container, needs none', async () => {
  // As libuv does for a user that is in no list.
  const script = `import os from 'node:os'
    import { syncBuiltinESMExports } from 'node:module'
    os.homedir = () => { throw Object.assign(new Error('uv_os_homedir'), { code: 'ERR_SYSTEM_ERROR' }) }
    syncBuiltinESMExports()`
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(script)}`
  const args = ['status', `s3://${BUCKET}/set`]
  const { code, stderr } = await runCli({ args, env: { ...here.env, HOME: '', NODE_OPTIONS } })
  expect(stderr).toContain('There is no data set')
  expect(code).toBe(2)
})
