import { expect, it, onTestFinished } from 'vitest'
import { BUCKET, startBucket } from '../support/bucket.ts'
import { startContainer } from '../support/container.ts'
import { freePort } from '../support/free-port.mjs'
import { type Ended, exits } from '../support/run-cli.ts'
import { type Environment, newWorkspace, PIPELINE, type Workspace } from '../support/workspace.ts'
import { CERTIFICATE_PATH, startHttpProxy, startTls } from './support/proxy.ts'

const PARTS = {
  service: { allow_http: true, retries: 0 },
  extract: { domains: ['scatterholt.com'], page_size: 50 },
}
const TRUST = { NODE_EXTRA_CA_CERTS: CERTIFICATE_PATH }

/** By the built command: what its bundle makes of connections is another thing than what the sources do. */
const run = (here: Workspace, env: Environment): Promise<Ended> =>
  here.with(env).start('run', PIPELINE).result

/** Runs the pipeline with an address of the service that only the proxy can resolve. */
function runAt(here: Workspace, origin: string, env: Environment): Promise<Ended> {
  return run(here, { SPILLWAY_BASE_URL: `${origin}${new URL(here.sandbox.baseUrl).pathname}`, ...env })
}

const SERVICE = 'https://service.example'
const CREDENTIALS = 'jean:p%40ss%3Aw%C3%B6rd@'
const WAYS = [
  ['http://service.example', 'HTTP_PROXY', 'http://', 'service.example:80'],
  ['http://service.example', 'HTTP_PROXY', '', 'service.example:80'],
  ['http://[fd00::1]:8080', 'HTTP_PROXY', 'http://', '[fd00::1]:8080'],
  ['http://[fd00::1]', 'HTTP_PROXY', 'http://', '[fd00::1]:80'],
  [`${SERVICE}:8443`, 'HTTPS_PROXY', `http://${CREDENTIALS}`, 'service.example:8443'],
  [SERVICE, 'https_proxy', 'https://', 'service.example:443'],
] as const

it.each(WAYS)('%s is reached through %s=%s…, end to end encrypted if it is https', async (...way) => {
  const [origin, variable, begin, target] = way
  const here = await newWorkspace(PARTS)
  const sandboxPort = Number(new URL(here.sandbox.baseUrl).port)
  const isEncrypted = origin.startsWith('https')
  const port = isEncrypted ? await startTls(sandboxPort) : sandboxPort
  const proxy = await startHttpProxy({ port, secure: begin.startsWith('https') })
  // The variable of the other scheme must not apply.
  const other = isEncrypted ? { ...TRUST, HTTP_PROXY: `http://127.0.0.1:${await freePort()}` } : {}
  const env = { ...other, [variable]: `${begin}127.0.0.1:${proxy.port}` }
  const { stderr } = await exits(0, runAt(here, origin, env))
  expect(stderr).toMatch(/^trial: 1 of 1 partition to do, [^\n]*\n$/)
  await here.expectRows(['scatterholt.com'])
  const authorization = `Basic ${Buffer.from('jean:p@ss:wörd').toString('base64')}`
  expect(proxy.connects[0]).toEqual({
    target,
    authorization: begin.includes(CREDENTIALS) ? authorization : null,
  })
})

const [DENIED, FORBIDDEN] = ['407 Proxy Authentication Required', '403 Forbidden']
const USER = 'http://jean:hunter2-hunter2@'
const REFUSALS = [
  { begin: USER, refuse: DENIED, code: 3, says: 'PROXY rejects the user or the password (407)' },
  { begin: 'http://', refuse: DENIED, code: 3, says: 'PROXY requires a user and a password (407)' },
  {
    begin: USER,
    refuse: FORBIDDEN,
    says: 'PROXY does not connect to service.example:443: it responded with 403',
  },
  {
    begin: USER,
    silent: true,
    says: 'PROXY cannot be used: No connection to 127.0.0.1:PORT was made in time (UND_ERR_CONNECT_TIMEOUT)',
  },
  {
    begin: USER,
    isDead: true,
    says: 'PROXY cannot be used: Nothing accepts connections at 127.0.0.1:PORT (ECONNREFUSED)',
  },
  { begin: 'https://', secure: true, says: 'The certificate of the proxy 127.0.0.1:PORT is not accepted' },
]

it.each(REFUSALS)('a proxy that refuses is named, its password is not: $says', async (given) => {
  const { begin, code = 1, says, isDead = false, ...options } = given
  const timeout = options.silent ? '1s' : '60s'
  const here = await newWorkspace({ ...PARTS, service: { ...PARTS.service, timeout } })
  const port = isDead ? await freePort() : (await startHttpProxy({ port: 0, ...options })).port
  const { stdout, stderr } = await exits(
    code,
    runAt(here, SERVICE, { HTTPS_PROXY: `${begin}127.0.0.1:${port}` }),
    says.replace('PROXY', `The proxy 127.0.0.1:PORT`).replaceAll('PORT', String(port)),
    code === 3 ? 'HTTPS_PROXY' : '',
  )
  for (const form of ['hunter2', Buffer.from('jean:hunter2-hunter2').toString('base64')])
    expect(stdout + stderr).not.toContain(form)
})

it('object storage is reached through HTTPS_PROXY as well', async () => {
  const { double, env } = await startBucket()
  onTestFinished(() => double.close())
  const proxy = await startHttpProxy({ port: await startTls(Number(new URL(double.endpoint).port)) })
  const s3 = { endpoint: `${SERVICE}:9000`, region: double.region }
  const here = await newWorkspace({ ...PARTS, load: { path: `s3://${BUCKET}/acme`, s3 } }, {}, env)
  await exits(0, run(here, { ...TRUST, HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` }))
  expect(new Set(proxy.connects.map(({ target }) => target))).toEqual(new Set(['service.example:9000']))
  const refusing = await startHttpProxy({ port: 0, refuse: FORBIDDEN })
  const refused = await run(here, { ...TRUST, HTTPS_PROXY: `http://127.0.0.1:${refusing.port}` })
  expect(refused.stderr).toContain(
    `The proxy 127.0.0.1:${refusing.port} does not connect to service.example:9000`,
  )
})

it('an emulator of Azure on this machine is reached without the proxy', async () => {
  const container = await startContainer()
  onTestFinished(() => container.close())
  const here = await newWorkspace(
    { ...PARTS, load: { path: `${container.address}/acme` } },
    {},
    container.env,
  )
  const nowhere = `http://127.0.0.1:${await freePort()}`
  await exits(0, run(here, { HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere }))
})
