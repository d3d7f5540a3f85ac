import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { accessTo, sandboxWith, spillway, writePipeline } from './spillway.ts'

it.skipIf(process.platform === 'win32')(
  'a signing key that others may read is named, and still used',
  async () => {
    const folder = scratchFolder()
    const file = await writePipeline(folder)
    const env = accessTo(await sandboxWith())
    expect((await spillway(['run', file], folder, env)).code).toBe(0)
    const key = join(folder, 'key.pem')
    writeFileSync(key, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
    // Services get files by group.
    for (const [mode, isOpen] of [
      [0o644, true],
      [0o602, true],
      [0o600, false],
      [0o440, false],
    ] as const) {
      chmodSync(key, mode)
      const { code, stderr } = await spillway(['sign', file, '--key', 'key.pem'], folder, env)
      expect([mode, code, /every user of this machine may read or change/.test(stderr)]).toEqual([
        mode,
        0,
        isOpen,
      ])
    }
  },
)
