import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { interview } from '../../src/cli/commands/init.ts'
import { readPipeline, starterPipeline } from '../../src/config/index.ts'
import { CLI } from '../support/run-cli.ts'
import { spillway, start, workFolder } from './spillway.ts'

it('init writes a pipeline file that is valid once the service is named', async () => {
  const folder = workFolder()
  const { code, stdout, stderr } = await spillway(['init'], folder)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('spillway check spillway.yaml')
  expect(statSync(join(folder, 'spillway.yaml')).mode & 0o777).toBe(0o600)
  const env = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }
  await expect(readPipeline('spillway.yaml', { env, cwd: folder })).resolves.toMatchObject({
    file: 'spillway.yaml',
  })
})

it('init never overwrites', async () => {
  const folder = workFolder()
  writeFileSync(join(folder, 'mine.yaml'), 'precious')
  const { code, stdout, stderr } = await spillway(['init', 'mine.yaml'], folder)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain('There is such a file already (mine.yaml)')
  expect(readFileSync(join(folder, 'mine.yaml'), 'utf8')).toBe('precious')
})

it('init into a missing folder is exit 2', async () => {
  const { code, stderr } = await spillway(['init', 'no/such/folder.yaml'], workFolder())
  expect(code).toBe(2)
  expect(stderr).toContain('ENOENT')
})

it('init --interactive repeats a question until its reply is valid, and writes the replies', async () => {
  const replies = [
    '',
    'ftp://x',
    'https://api.example.com/firework',
    '',
    'localhost',
    'acme.com, bücher.example',
  ]
  const rest = ['2024-02-30', '2024-02-03', '', 'fortnight', 'week', 'csv', 'hmac']
  const printed: string[] = []
  const given = [...replies, ...rest]
  const settings = await interview(
    async () => given.shift() ?? '',
    (line) => void printed.push(line),
    { name: 'my-acme', from: '2023-01-01' },
  )
  expect(printed).toEqual([
    expect.stringContaining('expected an http or https URL'),
    '  expected at least one domain',
    expect.stringContaining('found a name without a dot'),
    expect.stringContaining('expected a date or date-time that exists'),
    '  expected <n>h, <n>d, week, month or year',
  ])
  const folder = workFolder()
  writeFileSync(join(folder, 'p.yaml'), starterPipeline(settings))
  await expect(readPipeline('p.yaml', { env: {}, cwd: folder })).resolves.toMatchObject({
    name: 'my-acme',
    service: { baseUrl: 'https://api.example.com/firework' },
    extract: {
      queries: [{ fqdn: 'acme.com' }, { fqdn: 'xn--bcher-kva.example' }],
      windows: { until: 'now' },
    },
    transform: { secret: 'hmac' },
    load: { format: { kind: 'csv' } },
  })
})

it('init --interactive without a terminal is exit 2, and writes nothing', async () => {
  const folder = workFolder()
  const { code, stderr } = await start(['init', '--interactive'], folder).result
  expect(code).toBe(2)
  expect(stderr).toContain('no terminal')
  expect(readdirSync(folder)).toEqual([])
})

const hasPython = spawnSync('python3', ['-c', 'import pty']).status === 0

it.skipIf(!hasPython)('init --interactive on a terminal', async () => {
  const folder = workFolder()
  // Replies to each question with a line, like a user at a keyboard.
  const script = `
import os, pty, sys
replies = [b"", b"", b"acme.com", b"", b"", b"", b"", b"partial"]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
while True:
    try:
        text = os.read(terminal, 4096)
    except OSError:
        break
    if not text:
        break
    seen += text
    if replies and (b"]: " in seen or b"spaces: " in seen):
        seen = b""
        os.write(terminal, replies.pop(0) + b"\\n")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`
  const args = ['-c', script, process.execPath, CLI, 'init', 'acme.yaml', '--interactive']
  const { status, stderr } = spawnSync('python3', args, { cwd: folder, encoding: 'utf8', timeout: 60_000 })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const text = readFileSync(join(folder, 'acme.yaml'), 'utf8')
  expect(text).toMatch(/^name: acme /m)
  expect(text).toContain('  domains: [acme.com]')
  expect(text).toContain('  secret: partial ')
})

it('schema prints a JSON Schema and nothing else', async () => {
  const { code, stdout, stderr } = await spillway(['schema'], workFolder())
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    properties: { service: {}, extract: {}, transform: {}, load: {} },
  })
})
