import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { reportId } from '../../src/cli/commands/report.ts'
import { exits } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

it('each report comes once, and one that is not there is named on stderr', async () => {
  const { cli } = await newWorkspace({})
  const { stdout, stderr } = await exits(1, cli('report', '1', '99', '2', '2'))
  expect(stdout.match(/^# /gm)?.length).toBeGreaterThanOrEqual(2)
  expect(stdout).toContain('Report 1 ·')
  expect(stdout.match(/Report 2 ·/g)).toHaveLength(1)
  expect(stderr).toContain('report 99')
})

it('a port in use, and options out of range, are exit 2', async () => {
  const { sandbox, cli } = await newWorkspace({})
  const { port } = new URL(sandbox.origin)
  await exits(2, cli('sandbox', '--port', port), `The port is taken (port ${port}). Choose another port`)
  for (const [flag, value, expected] of [
    ['--error-rate', '2', 'a number from 0 to 1'],
    ['--domain', 'Acme', 'domains such as acme.com'],
    ['--latency', 'long', 'a duration such as 500ms, 30s or 1h'],
    ['--token-lifetime', '0s', 'a number above 0'],
    ['--until', '2023-01-01', 'a date or date-time after from'],
  ] as const)
    await exits(2, cli('sandbox', '--port', '0', flag, value), `${flag}: expected ${expected}`)
  await exits(2, cli('sandbox', '--port', '99999'), '--port: expected an integer from 0 to 65535')
})

it('reports go to one file each, readable by their owner alone', async () => {
  const { folder, cli } = await newWorkspace({})
  const { stdout } = await exits(0, cli('report', '7', '8', '--output', 'kept'))
  expect(stdout).toBe(`${join(folder, 'kept/report-7.md')}\n${join(folder, 'kept/report-8.md')}\n`)
  expect(readdirSync(join(folder, 'kept')).sort()).toEqual(['report-7.md', 'report-8.md'])
  expect(statSync(join(folder, 'kept/report-7.md')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(folder, 'kept/report-7.md'), 'utf8')).toContain('Report 7 ·')
})

it.each(['0', '-1', '1.5', '../1', '1e3', '', '12345678901234567890'])('"%s" is no report id', (text) => {
  expect(() => reportId(text)).toThrow('integers from 1 on')
})

it('an invalid report id is exit 2 before any request is sent', async () => {
  const { sandbox, cli } = await newWorkspace({})
  expect(await cli('report', '1', '../1')).toMatchObject({ code: 2, stdout: '' })
  expect(sandbox.requests).toHaveLength(0)
})

it('control sequences from the service do not reach the terminal', async () => {
  const hostile = '\\u001b[31mred\\u001b]0;title\\u0007\\u202e\\u009b2J'
  const rewrite = (text: string) => text.replace('An invented summary', hostile)
  const { cli } = await newWorkspace({}, { faults: [{ on: 'reports', kind: 'rewrite', rewrite }] })
  for (const format of ['markdown', 'json']) {
    const { stdout } = await exits(0, cli('report', '1', '--format', format))
    expect(stdout).toContain('red')
    expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
  }
})
