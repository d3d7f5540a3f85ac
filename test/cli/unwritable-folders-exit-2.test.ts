import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CLI, exits } from '../support/run-cli.ts'
import { newWorkspace, PIPELINE } from '../support/workspace.ts'
import { trial } from './trial.ts'

it('a path that is a file, or lies below one, is exit 2, and no request is sent', async () => {
  const { sandbox, folder, write, call } = await newWorkspace({})
  writeFileSync(join(folder, 'taken'), 'mine')
  mkdirSync(join(folder, 'half'))
  writeFileSync(join(folder, 'half/_state'), 'mine')
  for (const path of ['taken', 'taken/below', 'taken/below/that', 'half']) {
    await write({ load: { path } })
    for (const [command = '', ...flags] of [['run'], ['run', '--fresh', '--yes'], ['plan']]) {
      const said = /A part of the path is a file, not a folder.*, pipeline\.yaml:\d+:5\)/s
      await exits(2, call(command, ...flags), said)
    }
  }
  expect(readdirSync(join(folder, 'half'))).toEqual(['_state'])
  expect(sandbox.requests).toEqual([])
})

it.skipIf(process.platform === 'win32')('so is a folder without write permission', async () => {
  const { sandbox, folder, env: access } = await trial({ load: { path: 'closed/out' } })
  mkdirSync(join(folder, 'closed'))
  chmodSync(join(folder, 'closed'), 0o555)
  // Root may write anywhere, but for its capabilities.
  const dropped = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []
  const [command = '', ...args] = [...dropped, process.execPath, CLI, 'run', PIPELINE]
  const env = { PATH: process.env.PATH ?? '', ...access }
  const { status, stderr } = spawnSync(command, args, { cwd: folder, env, encoding: 'utf8' })
  expect([status, stderr]).toEqual([2, expect.stringContaining('Writing or reading is not permitted')])
  expect(sandbox.requests).toEqual([])
})
