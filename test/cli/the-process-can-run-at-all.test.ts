import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { reportError } from '../../src/cli/log/log.ts'
import { Screen, styleFor } from '../../src/cli/terminal/screen.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { Collector } from '../support/in-this-process.ts'
import { CLI, runCli } from '../support/run-cli.ts'

function shell(script: string, cwd: string, env: Readonly<Record<string, string>> = {}) {
  const all = { PATH: process.env.PATH ?? '', ...env }
  const { status, stdout, stderr } = spawnSync('sh', ['-c', script], { cwd, env: all, encoding: 'utf8' })
  return { code: status, stdout, stderr }
}

const SPILLWAY = `'${process.execPath}' '${CLI}'`

it.each(['18.20.4', '20.18.3'])('Node %s is refused in one sentence', (version) => {
  const older = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
  const words = ['--import', `data:text/javascript,${encodeURIComponent(older)}`, CLI, 'run', 'a.yaml']
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' })
  expect({ status, stdout, stderr }).toEqual({
    status: 2,
    stdout: '',
    stderr: `spillway: This is Node ${version}, and spillway needs 20.19 or newer: install one from https://nodejs.org.\n`,
  })
})

it('a working directory that was deleted is exit 2', () => {
  const gone = `mkdir d && cd d && rmdir ../d && exec ${SPILLWAY} check a.yaml`
  expect(shell(gone, scratchFolder())).toMatchObject({
    code: 2,
    stderr: 'spillway: The working directory is gone. Change to a folder that is there, then run again.\n',
  })
})

it('a defect outside of any command shows its stack at --log-level debug alone', async () => {
  const folder = scratchFolder()
  // In the place of a callback of a package, once the command has printed something.
  writeFileSync(
    join(folder, 'late.mjs'),
    `const { write } = process.stdout
process.stdout.write = (...given) => {
  setTimeout(() => { throw new RangeError('a value of a row') })
  return write.apply(process.stdout, given)
}
`,
  )
  const call = (flags: string) =>
    shell(`${SPILLWAY.replace("' '", "' --import ./late.mjs '")} sandbox --port 0 ${flags}`, folder)
  expect(call('')).toMatchObject({
    code: 1,
    stderr: 'spillway: An unexpected error: RangeError. Add --log-level debug to see where it comes from.\n',
  })
  const full = call('--log-level debug')
  expect(full.stderr).toMatch(/^spillway: An unexpected error: RangeError. \n +at .*late\.mjs/)
  expect(full.stderr).not.toContain('a value of a row')
})

it('an error of the system shows its code', () => {
  const stderr = new Collector()
  const screen = new Screen(stderr as unknown as NodeJS.WriteStream, {})
  const error = Object.assign(new Error('ENOSPC: no space left on device, write'), { syscall: 'write' })
  const logging = { format: 'pretty', level: 'info' } as const
  reportError(error, { screen, style: styleFor(false), logging, log: () => {} })
  expect(stderr.text).toContain('no space left on device')
})

const AT_EXIT = `import net from 'node:net'
process.on('exit', () => process.stderr.write(String(net.getDefaultAutoSelectFamilyAttemptTimeout())))`

it('an address of a host is tried for seconds before the next one, by every client', async () => {
  const preload = `data:text/javascript,${encodeURIComponent(AT_EXIT)}`
  const { code, stderr } = await runCli({ args: ['schema'], env: { NODE_OPTIONS: `--import ${preload}` } })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '2500' })
})
