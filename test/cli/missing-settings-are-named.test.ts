import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkRequirements, readPipeline, serviceFromEnvironment } from '../../src/config/index.ts'
import { runPipeline } from '../../src/run/index.ts'
import { runOptions } from '../../src/run-options.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import {
  accessTo,
  type Environment,
  type PipelineParts,
  sandboxWith,
  spillway,
  trial,
  writePipeline,
} from './spillway.ts'

const BASE = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }

/** A command on a pipeline file with these parts. */
async function ended(parts: PipelineParts, env: Environment = BASE, command = 'run') {
  const folder = scratchFolder()
  return spillway([command, await writePipeline(folder, parts)], folder, env)
}

describe('what a run needs besides its file', () => {
  it('is reported at once, each with file and line', async () => {
    const { code, stdout, stderr } = await ended({
      service: '  token_env: MY_TOKEN',
      extract: '  queries:\n    - { type: secret, secret_env: LEAKED }',
      rest: 'transform: { secret: hmac, mask_key_env: MY_KEY }',
    })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.split('\n').slice(1)).toEqual([
      expect.stringContaining(
        'trial.yaml:4:3: service.token_env: the environment variable MY_TOKEN is not set',
      ),
      expect.stringContaining(
        'trial.yaml:9:23: extract.queries[0].secret_env: the environment variable LEAKED is not set',
      ),
      expect.stringContaining(
        'trial.yaml:10:28: transform.mask_key_env: The masking policy hmac needs a key',
      ),
      '',
    ])
  })

  it('a token that the file does not mention is reported at service:', async () => {
    const { code, stderr } = await ended({})
    expect(code).toBe(2)
    expect(stderr).toContain('trial.yaml:2:1: service: the environment variable SPILLWAY_TOKEN is not set')
  })

  it('a service that cannot be asked without a token is not called ok', async () => {
    const { code, stdout } = await ended({}, BASE, 'check')
    expect(code).toBe(2)
    expect(stdout.match(/^\S+ +\S+/gm)).toEqual(['ok  file', 'no  environment', 'ok  data'])
  })

  it('is reported by the line that was read, whatever the file holds since', async () => {
    const folder = scratchFolder()
    const queries = ['A', 'A', 'B'].map((name) => `\n    - { type: secret, secret_env: ${name} }`).join('')
    const file = await writePipeline(folder, { extract: `  queries:${queries}` })
    const pipeline = await readPipeline(file, { env: BASE, cwd: folder })
    rmSync(join(folder, file))
    const env = { ...BASE, SPILLWAY_TOKEN: 'made-up', A: 'made up too' }
    const checked = checkRequirements(pipeline, { env, allowPlaintext: false })
    await expect(checked).rejects.toThrow(
      'trial.yaml:11:23: extract.queries[2].secret_env: the environment variable B is not set',
    )
  })

  it.each([
    ['transform: { secret: hmac }', '8:14: transform.secret: The masking policy hmac needs a key'],
    ['transform: { identity: hmac }', '8:14: transform.identity: The masking policy hmac needs a key'],
    [
      'transform: { secret: hmac, identity: hmac }',
      '8:14: transform.secret: The masking policy hmac needs a key, and SPILLWAY_MASK_KEY is not set',
    ],
  ])('a mask key that the file does not mention is reported where hmac is set: %s', async (rest, problem) => {
    const { code, stderr } = await ended({ rest }, { ...BASE, SPILLWAY_TOKEN: 'made-up-token' })
    expect(code).toBe(2)
    expect(stderr).toContain(`trial.yaml:${problem}`)
  })

  it.each(['two\nlines', 'tab\there', 'tökén', 'null\u0000'])(
    'a token that is invalid in a header is rejected before anything is written: %j',
    async (token) => {
      const sandbox = await sandboxWith()
      const folder = scratchFolder()
      writeFileSync(join(folder, 'token'), `${token}\n`)
      for (const name of ['token_env', 'api_key_env']) {
        const file = await writePipeline(folder, { service: `  ${name}: MY_TOKEN` })
        const before = readdirSync(folder)
        const env = { ...accessTo(sandbox), MY_TOKEN_FILE: join(folder, 'token') }
        for (const command of ['run', 'check']) {
          const { code, stderr } = await spillway([command, file], folder, env)
          expect(code, stderr).toBe(2)
          expect(stderr).toContain(`trial.yaml:4:3: service.${name}: what MY_TOKEN holds cannot be sent`)
          expect(stderr).not.toContain(token)
        }
        const pipeline = await readPipeline(file, { env, cwd: folder })
        const options = await runOptions(pipeline, { env })
        await expect(runPipeline(pipeline, options)).rejects.toMatchObject({ kind: 'config' })
        expect(readdirSync(folder)).toEqual(before)
      }
      expect(sandbox.requests).toHaveLength(0)
    },
  )

  it('options of the library need the masking key as well', async () => {
    const folder = scratchFolder()
    const file = await writePipeline(folder, { rest: 'transform: { identity: hmac }' })
    const pipeline = await readPipeline(file, { env: BASE, cwd: folder })
    await expect(runOptions(pipeline, { env: BASE })).rejects.toMatchObject({ kind: 'config' })
    const maskKey = new Uint8Array(32)
    await expect(runOptions(pipeline, { env: BASE, maskKey })).resolves.toMatchObject({
      maskKey,
      fresh: false,
    })
  })

  it('secrets may come from files', async () => {
    const folder = scratchFolder()
    const file = await writePipeline(folder, { rest: 'transform: { secret: hmac }' })
    writeFileSync(join(folder, 'token'), 'made-up\n')
    writeFileSync(join(folder, 'key'), `${'k'.repeat(32)}\n`)
    const env = {
      ...BASE,
      SPILLWAY_TOKEN_FILE: join(folder, 'token'),
      SPILLWAY_MASK_KEY_FILE: join(folder, 'key'),
    }
    const pipeline = await readPipeline(file, { env, cwd: folder })
    await expect(checkRequirements(pipeline, { env, allowPlaintext: false })).resolves.toEqual([
      'SPILLWAY_TOKEN',
      'SPILLWAY_MASK_KEY',
    ])
  })

  it('plaintext needs --allow-plaintext at each run', async () => {
    const { sandbox, file, call } = await trial({ rest: 'transform:\n  secret: plaintext' })
    const refused = await call('run', file)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('trial.yaml:9:3: transform.secret: plaintext needs consent')
    expect(sandbox.requests).toHaveLength(0)
    const allowed = await call('run', file, '--allow-plaintext')
    expect(allowed.code).toBe(0)
  })

  it('what leads to no data set is named with the line of load.path', async () => {
    const { sandbox, folder, file, env, call } = await trial({ rest: 'load: { path: az://container/team }' })
    for (const command of ['run', 'status']) {
      const { code, stderr } = await call(command, file)
      expect(code, stderr).toBe(2)
      expect(stderr).toMatch(/AZURE_STORAGE_ACCOUNT.*trial\.yaml:8:9\)/s)
    }
    const early = await writePipeline(folder, { rest: 'load:\n  path: out' })
    for (const args of [
      ['verify', early],
      ['load', early, '--to', 'duckdb:leaks.db'],
    ]) {
      const { code, stderr } = await spillway(args, folder, env)
      expect(code, stderr).toBe(2)
      expect(stderr).toContain(', trial.yaml:9:3)')
    }
    expect(sandbox.requests).toHaveLength(0)
  })

  it('an unset variable in the file is exit 2 with its line', async () => {
    const { code, stderr } = await ended({}, {})
    expect(code).toBe(2)
    expect(stderr).toMatch(/trial\.yaml:3:\d+: .*SPILLWAY_BASE_URL is not set/)
  })
})

describe('the service of the environment', () => {
  it.each([
    [{}, 'SPILLWAY_BASE_URL is not set'],
    [BASE, 'SPILLWAY_TOKEN is not set'],
    [{ SPILLWAY_BASE_URL: 'somewhere', SPILLWAY_TOKEN: 'x' }, 'SPILLWAY_BASE_URL is no base URL'],
    [{ SPILLWAY_BASE_URL: 'http://api.example.com/x', SPILLWAY_TOKEN: 'x' }, 'unencrypted'],
    [{ ...BASE, SPILLWAY_TOKEN: '"x"' }, 'what SPILLWAY_TOKEN holds is in quotes'],
  ])('%o: %s', (env, message) => {
    return expect(serviceFromEnvironment(env)).rejects.toThrow(message)
  })

  it('has the defaults of a pipeline file', async () => {
    expect(await serviceFromEnvironment({ ...BASE, SPILLWAY_TOKEN: 'x' })).toMatchObject({
      baseUrl: BASE.SPILLWAY_BASE_URL,
      auth: { kind: 'token', tokenEnv: 'SPILLWAY_TOKEN' },
      basicRequestsPerSecond: 4,
      retries: 8,
    })
  })
})
