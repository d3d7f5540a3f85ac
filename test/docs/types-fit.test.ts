import { exec } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('sources, tests and benchmarks compile', async () => {
  const called = promisify(exec)('npm run -s types', { cwd: join(import.meta.dirname, '../..') })
  const { stdout } = await called.catch((error: { stdout: string }) => error)
  expect(stdout).toBe('')
})
