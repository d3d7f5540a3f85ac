import fc from 'fast-check'
import { afterAll, afterEach } from 'vitest'
import * as knownSecrets from '../../src/core/secrets/known-secrets.ts'
import { endAll } from './at-the-end.ts'
import { seedOf } from './thorough.ts'

// Test files share a process. The next file must see neither the environment of this one nor its known secrets.
const before = { ...process.env }
export const { forgetSecrets } = knownSecrets as typeof knownSecrets & { forgetSecrets(): void }
forgetSecrets()

// What one run of the tests found, the next finds too.
fc.configureGlobal({ seed: seedOf(20260300) })

// Two commands that load at once, as no process of the product does, may leave the mask of one of them.
afterEach(() => void process.umask(0o022))

afterAll(async () => {
  await endAll()
  for (const name of Object.keys(process.env)) if (!Object.hasOwn(before, name)) delete process.env[name]
  Object.assign(process.env, before)
})
