import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CLI, exits, textOf } from '../support/run-cli.ts'
import { newWorkspace, PIPELINE, type Workspace } from '../support/workspace.ts'

const FULL = '/dev/full'
const STACK = /^\s+at |node:internal/m

function run(here: Workspace, shell: string, words: readonly string[], stdout: 'pipe' | number = 'pipe') {
  const child = spawn('/bin/sh', ['-c', `${shell} exec "$0" "$@"`, process.execPath, CLI, ...words], {
    cwd: here.folder,
    env: { PATH: process.env.PATH, ...here.env },
    stdio: ['ignore', stdout, 'pipe'],
  })
  const stderr = textOf(child.stderr!)
  return once(child, 'close').then(([code]) => ({ code, stderr: stderr() }))
}

it.skipIf(!existsSync(FULL))(
  'a full stdout is exit 1 and a message, and the export is complete',
  async () => {
    const here = await newWorkspace({})
    const commands = [['run', PIPELINE, '--json'], ['status', PIPELINE, '--json'], ['schema'], ['--help']]
    for (const words of commands) {
      const { code, stderr } = await run(here, '', words, openSync(FULL, 'w'))
      expect({ words, code }).toEqual({ words, code: 1 })
      // Without a terminal, run prints its plan first.
      const planned = words[0] === 'run' ? 'trial: 1 of 1 partition to do, [^\\n]*\\n' : ''
      const failed = 'spillway: The output cannot be written: ENOSPC \\(stdout\\).*\\n'
      expect(stderr).toMatch(new RegExp(`^${planned}${failed}$`))
    }
    expect(existsSync(join(here.output, '_SUCCESS'))).toBe(true)
    await here.expectRows(['scatterholt.com'])
  },
)

it.skipIf(process.platform === 'win32')(
  'a limit on the size of files is exit 1, and the message names the file and that limit',
  async () => {
    const here = await newWorkspace({ extract: { domains: ['scatterholt.com'], page_size: 50 } })
    // Blocks of 512 bytes: the first page does not fit.
    const { stderr } = await exits(1, run(here, 'ulimit -f 4;', ['run', PIPELINE]))
    expect(stderr).toMatch(
      /The file grew beyond the allowed size \(\S*out\/_state\/\S+\)\. Raise the limit of the process \(`ulimit -f`, LimitFSIZE under systemd\)/,
    )
    expect(stderr).not.toMatch(/disk is full|Free some space|shard_bytes/)
    expect((await here.run()).code).toBe(0)
    await here.expectRows(['scatterholt.com'])
  },
)

it.runIf(process.platform !== 'win32')(
  'too few file handles are exit 1 and a message, at the start and during the run',
  async () => {
    const here = await newWorkspace({
      extract: {
        domains: ['scatterholt.com'],
        windows: { from: '2024-01-01', until: '2025-01-01', every: 'month' },
        page_size: 2,
        concurrency: 8,
      },
    })
    const words = ['run', PIPELINE, '--log-level', 'debug']
    // Node.js itself takes some eighteen; then come the files of our code, of threads and of the data set.
    for (let handles = 19; handles < 25; handles++) {
      const { code, stderr } = await run(here, `ulimit -n ${handles};`, words)
      expect({ handles, code }, stderr).toEqual({ handles, code: 1 })
      expect(stderr).toMatch(/Too many files are open.*ulimit -n/)
      expect(stderr).not.toMatch(STACK)
      expect(stderr).not.toContain('unexpected error')
    }
    expect((await here.run()).code).toBe(0)
    await here.expectRows(['scatterholt.com'])
  },
)
