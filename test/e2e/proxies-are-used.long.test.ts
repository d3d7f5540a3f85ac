import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob'
import { expect, it, onTestFinished } from 'vitest'
import { ACCOUNT, KEY, startAzurite } from '../azure/azurite.ts'
import { startS3Double } from '../s3/double/server.ts'
import { CREDENTIALS, REGION } from '../s3/servers.ts'
import { freePort } from '../support/free-port.mjs'
import { type Ended, exits, runCli } from '../support/run-cli.ts'
import { type Environment, newWorkspace, PIPELINE, type Workspace } from '../support/workspace.ts'
import { CERTIFICATE_PATH, startHttpProxy, startTls } from './support/proxy.ts'

const PARTS = {
  service: { allow_http: true, retries: 0 },
  extract: { domains: ['scatterholt.com'], page_size: 50 },
}
const TRUST = { NODE_EXTRA_CA_CERTS: CERTIFICATE_PATH }

/**
 * Runs the pipeline with an address of the service that only the proxy can resolve, by the built command: what its
 * bundle makes of connections is another thing than what the sources do.
 */
function runAt(here: Workspace, origin: string, env: Environment, ...flags: string[]): Promise<Ended> {
  const baseUrl = `${origin}${new URL(here.sandbox.baseUrl).pathname}`
  return runCli({
    args: ['run', PIPELINE, ...flags],
    cwd: here.folder,
    env: { ...here.env, SPILLWAY_BASE_URL: baseUrl, ...env },
  })
}

const sandboxPort = (here: Workspace): number => Number(new URL(here.sandbox.baseUrl).port)

async function expectAllRows(here: Workspace, { code, stderr }: Ended): Promise<void> {
  const planned = expect.stringMatching(/^trial: 1 of 1 partition to do, [^\n]*\n$/)
  expect({ code, stderr }).toEqual({ code: 0, stderr: planned })
  await here.expectRows(['scatterholt.com'])
}

it('an http service is reached through HTTP_PROXY', async () => {
  const here = await newWorkspace(PARTS)
  const proxy = await startHttpProxy({ port: sandboxPort(here) })
  const ended = await runAt(here, 'http://service.example', { HTTP_PROXY: `http://127.0.0.1:${proxy.port}` })
  await expectAllRows(here, ended)
  expect(proxy.connects[0]).toEqual({ target: 'service.example:80', authorization: null })
})

it('an https service is reached through HTTPS_PROXY with user and password, end to end encrypted', async () => {
  const here = await newWorkspace(PARTS)
  const proxy = await startHttpProxy({ port: await startTls(sandboxPort(here)) })
  const ended = await runAt(here, 'https://service.example:8443', {
    ...TRUST,
    HTTPS_PROXY: `http://jean:p%40ss%3Aw%C3%B6rd@127.0.0.1:${proxy.port}`,
    // The variable of the other scheme must not apply.
    HTTP_PROXY: `http://127.0.0.1:${await freePort()}`,
  })
  await expectAllRows(here, ended)
  const authorization = `Basic ${Buffer.from('jean:p@ss:wörd').toString('base64')}`
  expect(proxy.connects[0]).toEqual({ target: 'service.example:8443', authorization })
})

it('the connection to the proxy may be encrypted too, and its address may lack the scheme', async () => {
  const here = await newWorkspace(PARTS)
  const tls = await startTls(sandboxPort(here))
  const secure = await startHttpProxy({ port: tls, secure: true })
  const env = { ...TRUST, https_proxy: `https://127.0.0.1:${secure.port}` }
  await expectAllRows(here, await runAt(here, 'https://service.example', env))
  expect(secure.connects[0]?.target).toBe('service.example:443')

  const refused = await newWorkspace(PARTS)
  await exits(
    1,
    runAt(refused, 'https://service.example', { HTTPS_PROXY: env.https_proxy }),
    `The certificate of the proxy 127.0.0.1:${secure.port} is not accepted`,
  )

  const bare = await newWorkspace(PARTS)
  const plain = await startHttpProxy({ port: sandboxPort(bare) })
  await expectAllRows(
    bare,
    await runAt(bare, 'http://service.example', { HTTP_PROXY: `127.0.0.1:${plain.port}` }),
  )
})

it('a service at an address of IPv6 is reached through a proxy', async () => {
  const here = await newWorkspace(PARTS)
  const proxy = await startHttpProxy({ port: sandboxPort(here) })
  const env = { HTTP_PROXY: `http://127.0.0.1:${proxy.port}` }
  await expectAllRows(here, await runAt(here, 'http://[fd00::1]:8080', env))
  expect(proxy.connects[0]?.target).toBe('[fd00::1]:8080')
  await expectAllRows(here, await runAt(here, 'http://[fd00::1]', env, '--fresh', '--yes'))
  expect(proxy.connects.at(-1)?.target).toBe('[fd00::1]:80')
})

const REFUSED = [
  { user: 'jean:hunter2-hunter2@', says: 'rejects the user or the password (407)' },
  { user: '', says: 'requires a user and a password (407)' },
]
it.each(REFUSED)('407 is exit 3: the proxy $says', async ({ user, says }) => {
  const here = await newWorkspace(PARTS)
  const proxy = await startHttpProxy({ port: 0, refuse: '407 Proxy Authentication Required' })
  const { stdout, stderr } = await exits(
    3,
    runAt(here, 'https://service.example', { HTTPS_PROXY: `http://${user}127.0.0.1:${proxy.port}` }),
    `The proxy 127.0.0.1:${proxy.port} ${says}`,
    'HTTPS_PROXY',
  )
  expectNoPassword(stdout + stderr)
})

it('a proxy that refuses the host, and one that is dead, are named; their passwords are not', async () => {
  const here = await newWorkspace(PARTS)
  const refusing = await startHttpProxy({ port: 0, refuse: '403 Forbidden' })
  const silent = await startHttpProxy({ port: 0, silent: true })
  const dead = await freePort()
  const says = {
    [refusing.port]: 'does not connect to service.example:443: it responded with 403',
    [dead]: `cannot be used: Nothing accepts connections at 127.0.0.1:${dead} (ECONNREFUSED)`,
    [silent.port]: `cannot be used: No connection to 127.0.0.1:${silent.port} was made in time (UND_ERR_CONNECT_TIMEOUT)`,
  }
  for (const [port, words] of Object.entries(says)) {
    const timeout = port === String(silent.port) ? '1s' : '60s'
    await here.write({ ...PARTS, service: { ...PARTS.service, timeout } })
    const { stdout, stderr } = await exits(
      1,
      runAt(here, 'https://service.example', {
        HTTPS_PROXY: `http://jean:hunter2-hunter2@127.0.0.1:${port}`,
      }),
      `The proxy 127.0.0.1:${port} ${words}`,
    )
    expectNoPassword(stdout + stderr)
  }
})

function expectNoPassword(text: string): void {
  for (const form of ['hunter2', Buffer.from('jean:hunter2-hunter2').toString('base64')])
    expect(text).not.toContain(form)
}

it('object storage is reached through HTTPS_PROXY as well', async () => {
  const server = await startS3Double({ region: REGION, credentials: [CREDENTIALS] })
  onTestFinished(() => server.close())
  const client = new S3Client({
    endpoint: server.endpoint,
    region: REGION,
    credentials: CREDENTIALS,
    forcePathStyle: true,
  })
  await client.send(new CreateBucketCommand({ Bucket: 'exports' }))
  const proxy = await startHttpProxy({ port: await startTls(Number(new URL(server.endpoint).port)) })
  const s3 = { endpoint: 'https://service.example:9000', region: REGION }
  const here = await newWorkspace({ ...PARTS, load: { path: 's3://exports/acme', s3 } })
  const env = {
    ...TRUST,
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`,
  }
  const run = (more: Environment) =>
    runCli({ args: ['run', PIPELINE], cwd: here.folder, env: { ...here.env, ...env, ...more } })
  const { code, stderr } = await run({})
  expect({ code, stderr }).toMatchObject({ code: 0 })
  expect(new Set(proxy.connects.map(({ target }) => target))).toEqual(new Set(['service.example:9000']))
  const refusing = await startHttpProxy({ port: 0, refuse: '403 Forbidden' })
  const refused = await run({ HTTPS_PROXY: `http://127.0.0.1:${refusing.port}` })
  expect(refused.stderr).toContain(
    `The proxy 127.0.0.1:${refusing.port} does not connect to service.example:9000`,
  )
})

it('an emulator of Azure on this machine is reached without the proxy', async () => {
  const azurite = await startAzurite()
  onTestFinished(() => azurite.close())
  await new BlobServiceClient(azurite.endpoint, new StorageSharedKeyCredential(ACCOUNT, KEY))
    .getContainerClient('exports')
    .create()
  const nowhere = `http://127.0.0.1:${await freePort()}`
  const load = { path: 'az://exports/acme', azure: { endpoint: azurite.endpoint } }
  const here = await newWorkspace({ ...PARTS, load })
  const env = {
    AZURE_STORAGE_ACCOUNT: ACCOUNT,
    AZURE_STORAGE_KEY: KEY,
    HTTP_PROXY: nowhere,
    HTTPS_PROXY: nowhere,
  }
  const { code, stderr } = await runCli({
    args: ['run', PIPELINE],
    cwd: here.folder,
    env: { ...here.env, ...env },
  })
  expect({ code, stderr }).toMatchObject({ code: 0 })
})
