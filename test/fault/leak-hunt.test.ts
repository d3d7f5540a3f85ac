import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { wordsOf, writeInputs } from '../support/command-words.ts'
import { carryOut } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { startAttack } from './hostile-run.ts'
import { credential } from './hostile-service.ts'
import { type Canary, findLeaks, type Haystack, haystacksOf } from './leak-search.ts'
import { CANARIES, IDENTITY, SECRETS, startTellTale } from './leak-service.ts'
import { type Ended, runCli } from './support.ts'

const COLUMNAR = 'format: parquet, compression: none'
const SETUPS: readonly Setup[] = [
  { secret: 'redact', load: COLUMNAR, every: true },
  { secret: 'drop', load: 'format: parquet, compression: gzip' },
  { secret: 'partial', load: 'format: parquet' },
  { secret: 'hmac', load: 'format: parquet', identity: 'hmac', logs: 'json', every: true, auth: 'api-key' },
  { secret: 'hmac', load: 'format: parquet, engine: parquetjs-lite' },
  { secret: 'partial', load: 'format: parquet, engine: parquetjs-lite', identity: 'hmac', logs: 'json' },
  { secret: 'redact', load: 'format: csv', identity: 'drop', auth: 'file' },
  { secret: 'drop', load: 'format: csv, engine: csv-stringify', logs: 'json' },
  { secret: 'partial', load: 'format: csv, compression: gzip', identity: 'drop', auth: 'api-key' },
  { secret: 'hmac', load: 'format: csv, engine: csv-stringify, compression: gzip', auth: 'file' },
]

type Setup = {
  readonly secret: 'redact' | 'drop' | 'partial' | 'hmac' | 'plaintext'
  readonly load: string
  readonly identity?: 'keep' | 'hmac' | 'drop'
  readonly logs?: 'pretty' | 'json'
  readonly auth?: 'token' | 'file' | 'api-key'
  readonly every?: boolean
}

test.concurrent.each(THOROUGH ? SETUPS : SETUPS.slice(6, 7))(
  'no planted secret is found: secret $secret, identity $identity, $load, $auth',
  async (setup) => {
    const { identity = 'keep', logs = 'pretty' } = setup
    const hunt = await startHunt(setup)
    const run = ['run', hunt.pipeline, '--log-level', 'debug', '--log-format', logs]
    const killed = await hunt.call(run, { killAtSearch: 7 })
    expect(killed.signal).toBe('SIGKILL')
    await hunt.expectNoLeaks('after the kill')
    const ended = await exits(1, (setup.every ? hunt.call : hunt.callHere)([...run, '--json']))
    expect(JSON.parse(ended.stdout)).toMatchObject({ partitions: { done: 2, failed: 1 } })
    expect(ended.stderr).toContain('[left out: the run holds a query whose value must not be shown')
    await exits(0, hunt.callHere(['verify', hunt.pipeline]))
    if (setup.every) await everyCommand(hunt)
    await hunt.expectNoLeaks('at the end')
    if (identity !== 'keep') await hunt.expectNoLeaks('identities', [{ name: 'identity', value: IDENTITY }])
    await expectPrivate(hunt.folder)
  },
)

test('what a refusal quotes of a row is on stderr alone: others read its status and code', async () => {
  const hash = 'Summer-of-69!'
  const { call, folder } = await startAttack(
    (exchange) => {
      const { fqdn } = exchange.body?.query ?? {}
      if (fqdn === 'acme.example') exchange.json({ items: [credential(1, { hash })], next: null })
      else if (fqdn === 'a.example')
        exchange.json({ error: { code: 'NOT_HERE', message: `no ${hash}` } }, 404)
      else if (fqdn === 'b.example') exchange.json({ detail: [{ loc: ['body', hash], msg: 'wrong' }] }, 422)
      else exchange.json({ error: { code: hash, message: hash } }, 503)
    },
    {
      service: { retries: 1 },
      extract: { domains: ['acme.example', 'a.example', 'b.example', 'c.example'] },
    },
  )
  const run = await exits(1, call('run', '--json', '--metrics-file', 'metrics.prom'))
  expect(run.stderr).toContain(`The response says: no ${hash}`)
  expect(run.stderr).toContain(`The response says: body.${hash}: wrong`)
  expect(run.stderr).toContain(`The response says: ${hash}: ${hash}`)
  const others = [
    Buffer.from(run.stdout),
    ...['status', 'plan', 'verify', 'summary'].map(async (name) => (await call(name)).stdout),
    ...(await haystacksOf(folder)).map(({ bytes }) => bytes),
  ]
  const texts = (await Promise.all(others)).join('\n')
  expect(texts).toContain('The service responded with 404: NOT_HERE')
  expect(texts).not.toContain(hash)
  const stopped = await exits(1, call('run', '--fail-fast', '--log-format', 'json'))
  expect(stopped.stderr).toContain(`The response says: no ${hash}`)
})

test.each(some(['parquet', 'csv, compression: gzip'], 1))(
  'the search finds plaintext in a data set: %s',
  async (format) => {
    const hunt = await startHunt({ secret: 'plaintext', load: `format: ${format}` })
    await exits(1, hunt.callHere(['run', hunt.pipeline, '--allow-plaintext']))
    const leaks = findLeaks(await haystacksOf(hunt.folder), CANARIES).join('\n')
    expect(leaks).toMatch(/^hash \(.*\.(?:parquet|csv\.gz), /m)
    // Consent covers the exported secrets, not the credentials of the service.
    expect(leaks).not.toMatch(/^(?:token|maskKey|apiKey|exchanged)/m)
  },
)

/** What these print and write is looked through, whether they can be carried out or not. */
async function everyCommand({ callHere: call, pipeline, folder }: Hunt): Promise<void> {
  // Whoever is given is repeated.
  writeInputs(folder, ['somebody@acme.example'])
  const ended = new Map<string, number | null>()
  for (const [name, ...flags] of await wordsOf())
    for (const more of [[], ['--json'], ['--log-level', 'debug', '--log-format', 'json']])
      ended.set(name, (await call([name, pipeline, ...flags, ...more])).code)
  for (const name of ['plan', 'check', 'status', 'summary', 'tables', 'compact'])
    expect(ended.get(name)).toBe(0)
  const results = [
    await call(['report', '1', '2', '--log-level', 'debug']),
    await call(['report', '1', '--format', 'json', '--output', join(folder, 'reports')]),
    await call(['run', pipeline, '--fresh', '--yes', '--log-level', 'debug', '--fail-fast']),
    await call(['run', pipeline, '--max-requests', '1', '--log-level', 'debug']),
    // The message about a wrong command line must not repeat secrets of the environment.
    await call(['run', pipeline, '--format', 'xml']),
  ]
  expect(results.map(({ code }) => code)).toEqual([1, 0, 1, expect.any(Number), 2])
}

type Hunt = {
  /** Commands can only write below it. */
  readonly folder: string
  readonly pipeline: string
  call(args: readonly string[], options?: { readonly killAtSearch?: number }): Promise<Ended>
  /** The same in this process, except when everything is tried. */
  callHere(args: readonly string[]): Promise<Ended>
  expectNoLeaks(when: string, canaries?: readonly Canary[]): Promise<void>
}

async function startHunt({ secret, load, identity = 'keep', auth = 'token' }: Setup): Promise<Hunt> {
  const folder = scratchFolder()
  // Outside of it: files in which the user keeps secrets are no leak.
  const keys = scratchFolder()
  await mkdir(join(folder, 'tmp'), { mode: 0o700 })
  const outputs: Haystack[] = []
  let onSearch = (): void => {}
  const service = await startTellTale(() => onSearch())
  const pipeline = join(folder, 'pipeline.yaml')
  const apiKey = auth === 'api-key' ? 'api_key_env: SPILLWAY_API_KEY, token_url: /tokens/generate,' : ''
  await writeFile(
    pipeline,
    `
name: leak
service: { base_url: "\${SPILLWAY_BASE_URL}", ${apiKey} requests_per_second: 1000, basic_requests_per_second: 1000, retries: 2 }
extract:
  domains: [acme.example, refused.example]
  queries: [{ type: secret, secret_env: LEAKED_PASSWORD }]
  concurrency: 1
transform: { secret: ${secret}, identity: ${identity}, max_quarantined: 100% }
load: { ${load}, path: out, shard_rows: 7 }
`,
    { mode: 0o600 },
  )
  const variables = {
    SPILLWAY_BASE_URL: service.baseUrl,
    SPILLWAY_MASK_KEY: SECRETS.maskKey,
    LEAKED_PASSWORD: SECRETS.query,
    ...(await authEnv(auth, keys)),
  }
  const env = { HOME: folder, TMPDIR: join(folder, 'tmp'), ...variables }
  const keep = (args: readonly string[], ended: Ended): Ended => {
    for (const name of ['stdout', 'stderr'] as const)
      outputs.push({ name: `${name} of ${args[0]}`, bytes: Buffer.from(ended[name]) })
    return ended
  }

  return {
    folder,
    pipeline,
    async call(args, { killAtSearch } = {}) {
      let searches = 0
      return keep(
        args,
        await runCli({
          args,
          cwd: folder,
          env,
          onStart(kill, pid) {
            onSearch = () => {
              searches++
              void argumentsOf(pid).then((bytes) => outputs.push({ name: 'process arguments', bytes }))
              if (searches === killAtSearch) kill('SIGKILL')
            }
          },
        }),
      )
    },
    callHere: async (args) => keep(args, await carryOut({ args, cwd: folder, env: variables })),
    async expectNoLeaks(when, canaries = CANARIES) {
      expect(findLeaks([...outputs, ...(await haystacksOf(folder))], canaries), when).toEqual([])
    },
  }
}

async function authEnv(auth: 'token' | 'file' | 'api-key', keys: string): Promise<Record<string, string>> {
  switch (auth) {
    case 'token':
      return { SPILLWAY_TOKEN: SECRETS.token }
    case 'file':
      await writeFile(join(keys, 'token'), `${SECRETS.token}\n`, { mode: 0o600 })
      return { SPILLWAY_TOKEN_FILE: join(keys, 'token') }
    case 'api-key':
      return { SPILLWAY_API_KEY: SECRETS.apiKey, SPILLWAY_TOKEN: SECRETS.token }
  }
}

/** Empty where /proc does not exist. */
async function argumentsOf(pid: number): Promise<Buffer> {
  return readFile(`/proc/${pid}/cmdline`).catch(() => Buffer.alloc(0))
}

/** Only the owner may read the files. */
async function expectPrivate(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const mode = (await stat(path)).mode & 0o777
    expect(mode & 0o077, `${path} ${mode.toString(8)}`).toBe(0)
  }
}
