import { afterAll } from 'vitest'
import * as knownSecrets from '../../src/core/secrets/known-secrets.ts'

// Files share a process: what one of them sets in its environment, and the secrets that it uses, are not for the next one.
const before = { ...process.env }
const { forgetSecrets } = knownSecrets as typeof knownSecrets & { forgetSecrets(): void }
forgetSecrets()

afterAll(() => {
  for (const name of Object.keys(process.env)) if (!Object.hasOwn(before, name)) delete process.env[name]
  Object.assign(process.env, before)
})
