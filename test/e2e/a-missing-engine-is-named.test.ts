import { execFile } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { PACKAGE } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

it('plan and run name parquetjs-lite where it is not installed, before they send a request', async () => {
  const here = await newWorkspace({ load: { engine: 'parquetjs-lite' } })
  // Without the packages beside it.
  for (const part of ['dist', 'package.json'])
    cpSync(join(PACKAGE, part), join(here.folder, 'alone', part), { recursive: true })
  for (const command of ['plan', 'run']) {
    const args = [join(here.folder, 'alone/dist/cli/main.js'), command, 'pipeline.yaml']
    const options = { cwd: here.folder, env: { ...process.env, ...here.env } }
    const ended = await promisify(execFile)(process.execPath, args, options).catch((error) => error)
    expect({ command, code: ended.code }).toEqual({ command, code: 2 })
    expect(ended.stderr).toContain(
      'The engine parquetjs-lite needs the package parquetjs-lite, which is not installed (load.engine). Leave out load.engine,',
    )
  }
  expect(here.searches()).toEqual([])
})
