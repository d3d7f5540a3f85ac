import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT, start, workFolder } from './spillway.ts'

it('--help lists the commands and the exit codes', async () => {
  const { code, stdout, stderr } = await start(['--help'], workFolder()).result
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  for (const command of ['run', 'plan', 'status', 'verify', 'check', 'report', 'sandbox', 'init', 'schema']) {
    expect(stdout).toMatch(new RegExp(`^  spillway ${command} `, 'm'))
  }
  expect(stdout).toContain('130, 143 interrupted')
  expect(stdout).not.toContain('spillway demo')
})

it('each command explains its flags', async () => {
  const { code, stdout, stderr } = await start(['run', '--help'], workFolder()).result
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  for (const flag of [
    'from',
    'until',
    'domain',
    'output',
    'format',
    'max-requests',
    'concurrency',
    'fail-fast',
    'fresh',
    'yes',
    'allow-plaintext',
    'json',
    'log-format',
    'log-level',
    'no-progress',
  ]) {
    expect(stdout).toContain(`--${flag}`)
  }
  expect(stdout).toContain('Examples:')
})

it('--version is that of the package', async () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  expect(await start(['--version'], workFolder()).result).toEqual({
    code: 0,
    stdout: `${version}\n`,
    stderr: '',
  })
})
