import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readPipeline, serviceFromEnvironment } from '../../src/pipeline/index.ts'
import { runPipeline } from '../../src/run/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
import { type Environment, newWorkspace, PIPELINE, type PipelineParts } from '../support/workspace.ts'

const BASE = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }
const TOKEN = { ...BASE, SPILLWAY_TOKEN: 'made-up-token' }
const NEEDS = 'The masking policy hmac needs a key'
const BOTH = { secret: 'hmac', identity: 'hmac' }

/** A command on a pipeline file with these parts, with these variables alone. */
async function ended(parts: PipelineParts, env: Environment = BASE, command = 'run') {
  const { folder } = await newWorkspace(parts)
  return inThisProcess([command, PIPELINE], folder, env)
}

describe('what a run needs besides its file', () => {
  it('is reported at once, each with file and line', async () => {
    const parts = {
      service: { token_env: 'MY_TOKEN' },
      extract: { queries: [{ type: 'secret', secret_env: 'LEAKED' }] },
      transform: { secret: 'hmac', mask_key_env: 'MY_KEY' },
    }
    const problems = [
      'pipeline.yaml:7:5: service.token_env: the environment variable MY_TOKEN is not set',
      'pipeline.yaml:13:9: extract.queries[0].secret_env: the environment variable LEAKED is not set',
      'pipeline.yaml:20:5: transform.mask_key_env: The masking policy hmac needs a key',
    ]
    const { stdout, stderr } = await exits(2, ended(parts), ...problems)
    expect([stdout, stderr.trim().split('\n').length]).toEqual(['', 4])
  })

  it('a service that cannot be asked without a token is not called ok', async () => {
    const { stdout } = await exits(2, ended({}, BASE, 'check'))
    expect(stdout.match(/^\S+ +\S+/gm)).toEqual(['ok  file', 'no  environment', 'ok  data'])
  })

  it.each<[PipelineParts, Environment, string]>([
    [{}, BASE, '3:3: service: the environment variable SPILLWAY_TOKEN is not set'],
    [{ transform: { secret: 'hmac' } }, TOKEN, `15:5: transform.secret: ${NEEDS}`],
    [{ transform: BOTH }, TOKEN, `15:5: transform.secret: ${NEEDS}, and SPILLWAY_MASK_KEY is not set`],
  ])('what the file does not mention is reported where it is needed: %o', async (parts, env, problem) => {
    await exits(2, ended(parts, env), `pipeline.yaml:${problem}`)
  })

  it.each(['two\nlines', 'tökén'])(
    'a token that is invalid in a header is rejected before anything is written: %j',
    async (token) => {
      const here = await newWorkspace({})
      const { folder, sandbox } = here
      writeFileSync(join(folder, 'token'), `${token}\n`)
      const { call, env } = here.with({ MY_TOKEN_FILE: join(folder, 'token') })
      for (const name of ['token_env', 'api_key_env']) {
        await here.write({ service: { [name]: 'MY_TOKEN' } })
        const before = readdirSync(folder)
        for (const command of ['run', 'check']) {
          const said = `pipeline.yaml:7:5: service.${name}: what MY_TOKEN holds cannot be sent`
          const { stderr } = await exits(2, call(command), said)
          expect(stderr).not.toContain(token)
        }
        const pipeline = await readPipeline(PIPELINE, { env, cwd: folder })
        const options = await runOptions(pipeline, { env })
        await expect(runPipeline(pipeline, options)).rejects.toMatchObject({ kind: 'config' })
        expect(readdirSync(folder)).toEqual(before)
      }
      expect(sandbox.requests).toHaveLength(0)
    },
  )

  it('what only the plan or the data set shows is reported with file and line', async () => {
    const range = { from: '2024-01-01', until: '2024-07-01' }
    const here = await newWorkspace({})
    const rejected = async (extract: Record<string, unknown>, command: string, what: RegExp) => {
      await here.write({ extract })
      const { stderr } = await exits(2, here.call(command), what)
      const [key] = Object.keys(extract)
      const line = readFileSync(join(here.folder, PIPELINE), 'utf8').split(`"${key}"`)[0]!.split('\n').length
      expect(stderr).toMatch(new RegExp(`\\(pipeline\\.yaml:${line}:\\d+\\)`))
    }
    const twins = ['John', 'john'].map((keyword) => ({ type: 'keyword', keyword }))
    await rejected({ queries: twins }, 'plan', /keyword\.John and keyword\.john/)
    const one = { domains: ['scatterholt.com'] }
    await here.write({ extract: one })
    await exits(0, here.call('run'))
    await rejected({ windows: { ...range, every: 'month' }, ...one }, 'run', /exported without windows/)

    await here.write({ extract: { windows: { ...range, every: 'month' }, page_size: 10, ...one } })
    await exits(4, here.call('run', '--fresh', '--yes', '--max-requests', '1'))
    const cut = { from: '2024-01-01', until: '2024-01-02' }
    await rejected({ windows: cut, page_size: 10, ...one }, 'run', /the new windows would cut it/)
  })

  it('plaintext needs --allow-plaintext at each run', async () => {
    const { sandbox, call } = await newWorkspace({ transform: { secret: 'plaintext' } })
    await exits(2, call('run'), 'pipeline.yaml:15:5: transform.secret: plaintext needs consent')
    expect(sandbox.requests).toHaveLength(0)
    await exits(0, call('run', '--allow-plaintext'))
  })

  it('what leads to no data set is named with the line of load.path', async () => {
    const { sandbox, write, call } = await newWorkspace({ load: { path: 'az://container/team' } })
    for (const command of ['run', 'status']) {
      const { stderr } = await exits(2, call(command))
      expect(stderr).toMatch(/AZURE_STORAGE_ACCOUNT.*pipeline\.yaml:17:5\)/s)
    }
    await write({})
    for (const [command = '', ...flags] of [['verify'], ['load', '--to', 'duckdb:leaks.db']])
      await exits(2, call(command, ...flags), ', pipeline.yaml:17:5)')
    // Or of its section.
    await write({ load: { path: undefined } })
    await exits(2, call('verify'), 'output/trial/_manifest.json, pipeline.yaml:16:3)')
    expect(sandbox.requests).toHaveLength(0)
  })

  it('an unset variable in the file is exit 2 with its line', async () => {
    await exits(2, ended({}, {}), /pipeline\.yaml:4:\d+: .*SPILLWAY_BASE_URL is not set/)
  })
})

describe('the service of the environment', () => {
  it.each([
    [{}, 'SPILLWAY_BASE_URL is not set'],
    [BASE, 'SPILLWAY_TOKEN is not set'],
    [{ SPILLWAY_BASE_URL: 'somewhere', SPILLWAY_TOKEN: 'made-up-token' }, 'SPILLWAY_BASE_URL is no base URL'],
    [{ SPILLWAY_BASE_URL: 'http://api.example.com/x', SPILLWAY_TOKEN: 'made-up-token' }, 'unencrypted'],
    [{ ...BASE, SPILLWAY_TOKEN: '"made-up-token"' }, 'what SPILLWAY_TOKEN holds is in quotes'],
  ])('%o: %s', (env, message) => {
    return expect(serviceFromEnvironment(env)).rejects.toThrow(message)
  })

  it('has the defaults of a pipeline file', async () => {
    expect(await serviceFromEnvironment({ ...BASE, SPILLWAY_TOKEN: 'made-up-token' })).toMatchObject({
      baseUrl: BASE.SPILLWAY_BASE_URL,
      auth: { kind: 'token', secretIn: 'SPILLWAY_TOKEN' },
      basicRequestsPerSecond: 4,
      retries: 8,
    })
  })
})

it.each(['token', 'api_key'] as const)(
  'service.%s_file names a file beside the pipeline file, and needs no variable',
  async (kind) => {
    const key = `${kind}_file`
    const service = { [key]: 'secrets/acme' }
    const here = await newWorkspace({ service })
    const file = join(here.folder, 'secrets/acme')
    mkdirSync(join(here.folder, 'secrets'))
    writeFileSync(file, `${kind === 'token' ? here.sandbox.token : here.sandbox.apiKey}\n`)
    const bare = here.with({ SPILLWAY_TOKEN: '', SPILLWAY_API_KEY: '' })
    await exits(0, bare.call('check'))
    await exits(0, bare.call('run'))
    const { stdout } = await exits(0, bare.call('check', '--resolved'))
    expect(stdout).toContain(`${key}: ${file}`)

    writeFileSync(file, '\n')
    await exits(2, bare.call('run', '--redo', '*'), `The file ${file} with the token or key is empty`)
    rmSync(file)
    await exits(2, bare.call('run', '--redo', '*'), `The file ${file} with the token or key`)
    await here.write({ service: { ...service, [`${kind}_env`]: `SPILLWAY_${kind.toUpperCase()}` } })
    await exits(2, bare.call('check'), /expected \w+ or \w+, found both/)
  },
)
