import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { CLI } from '../support/run-cli.ts'
import { accessTo, sandboxWith, spillway, trial, writePipeline } from './spillway.ts'

it('a path that is a file, or lies below one, is exit 2, and no request is sent', async () => {
  const sandbox = await sandboxWith()
  const folder = scratchFolder()
  writeFileSync(join(folder, 'taken'), 'mine')
  mkdirSync(join(folder, 'half'))
  writeFileSync(join(folder, 'half/_state'), 'mine')
  for (const path of ['taken', 'taken/below', 'taken/below/that', 'half']) {
    const file = await writePipeline(folder, { rest: `load: { path: ${path} }` })
    for (const args of [
      ['run', file],
      ['run', file, '--fresh', '--yes'],
      ['plan', file],
    ]) {
      const ended = await spillway(args, folder, accessTo(sandbox))
      expect([path, args[0], ended.code]).toEqual([path, args[0], 2])
      expect(ended.stderr).toContain('A part of the path is a file, not a folder')
      expect(ended.stderr).toMatch(/, trial\.yaml:8:9\)/)
    }
  }
  expect(readdirSync(join(folder, 'half'))).toEqual(['_state'])
  expect(sandbox.requests).toEqual([])
})

it.skipIf(process.platform === 'win32')('so is a folder without write permission', async () => {
  const { sandbox, folder, file, env: access } = await trial({ rest: 'load: { path: closed/out }' })
  mkdirSync(join(folder, 'closed'))
  chmodSync(join(folder, 'closed'), 0o555)
  chmodSync(folder, 0o755)
  chmodSync(join(folder, file), 0o644)
  // Root may write anywhere.
  const nobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
  const env = { PATH: process.env.PATH ?? '', ...access }
  const child = spawn(process.execPath, [CLI, 'run', file], { cwd: folder, env, ...nobody })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [code] = (await once(child, 'close')) as [number | null]
  expect([code, stderr]).toEqual([2, expect.stringContaining('Writing or reading is not permitted')])
  expect(sandbox.requests).toEqual([])
})
