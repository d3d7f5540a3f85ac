import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { accessTo, sandboxWith, spillway, workFolder, writePipeline } from './spillway.ts'

const WARNING = /every user of this machine may read or change/

async function world() {
  const sandbox = await sandboxWith()
  const folder = workFolder()
  const file = await writePipeline(folder, { rest: 'transform: { secret: hmac }' })
  const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })
  const at = (name: string) => join(folder, name)
  writeFileSync(at('token'), `${sandbox.token}\n`)
  writeFileSync(at('mask-key'), `${'k'.repeat(32)}\n`)
  writeFileSync(at('key.pem'), key)
  symlinkSync('token', at('token-link'))
  const chmod = (mode: number) => {
    for (const name of ['token', 'mask-key', 'key.pem']) chmodSync(at(name), mode)
  }
  const env = {
    SPILLWAY_BASE_URL: sandbox.baseUrl,
    SPILLWAY_TOKEN_FILE: at('token-link'),
    SPILLWAY_MASK_KEY_FILE: at('mask-key'),
  }
  return { sandbox, folder, file, chmod, env, at }
}

it.skipIf(process.platform === 'win32')(
  'files with a token or a key that others may read are named on stderr, and still used',
  async () => {
    const { sandbox, folder, file, chmod, env, at } = await world()
    chmod(0o644)
    const run = await spillway(['run', file], folder, env)
    expect(run.code, run.stderr).toBe(0)
    const warnings = run.stderr.split('\n').filter((line) => WARNING.test(line))
    expect(warnings).toHaveLength(2)
    expect(warnings.join()).toContain(at('token-link'))
    expect(warnings.join()).toContain(at('mask-key'))
    expect(run.stderr).not.toContain(sandbox.token)
    const sign = await spillway(['sign', file, '--key', 'key.pem'], folder, env)
    expect([sign.code, sign.stderr]).toEqual([0, expect.stringMatching(WARNING)])
    // A variable beats its file, which is not read then.
    const both = { ...env, ...accessTo(sandbox), SPILLWAY_MASK_KEY: 'k'.repeat(32) }
    expect((await spillway(['run', file], folder, both)).stderr).not.toMatch(WARNING)

    // Services get files by group: see docs/operations.md.
    for (const mode of [0o600, 0o400, 0o440]) {
      chmod(mode)
      for (const args of [
        ['run', file],
        ['sign', file, '--key', 'key.pem'],
      ]) {
        expect((await spillway(args, folder, env)).stderr, mode.toString(8)).not.toMatch(WARNING)
      }
    }
    for (const mode of [0o604, 0o602]) {
      chmod(mode)
      expect((await spillway(['run', file], folder, env)).stderr, mode.toString(8)).toMatch(WARNING)
    }
  },
)
