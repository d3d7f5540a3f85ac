import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('sources, tests and benchmarks compile', async () => {
  const root = join(import.meta.dirname, '../..')
  const called = promisify(execFile)(process.execPath, ['node_modules/typescript/bin/tsc', '--noEmit'], {
    cwd: root,
  })
  const { stdout } = await called.catch((error: { stdout: string }) => error)
  expect(stdout).toBe('')
})
