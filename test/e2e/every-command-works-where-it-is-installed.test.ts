import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.ts'
import { CLI, chunksFolder, PACKAGE, runCli } from '../support/run-cli.ts'
import { some, THOROUGH } from '../support/thorough.ts'
import { newWorkspace, temporaryFolder } from '../support/workspace.ts'

// Each command is a file of the bundle that is loaded on demand. Most tests of commands run the sources.

it('each command prints its help', async () => {
  const cwd = temporaryFolder()
  for (const name of some(Object.keys(COMMANDS), 3)) {
    const { code, stdout, stderr } = await runCli({ args: [name, '--help'], cwd })
    expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`^spillway ${name}`))
  }
})

it('every file of the bundle that a command loads exists', async () => {
  const folder = join(PACKAGE, 'dist')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => /^(?!chunks).*\.js$/.test(file) || file.startsWith(`${chunksFolder(PACKAGE)}/`),
  )
  const loaded = files.flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/\bimport\("(\.[^"]+)"\)/g)].map(([, to = '']) =>
      join(folder, dirname(file), to),
    ),
  )
  expect(new Set(loaded).size).toBeGreaterThan(Object.keys(COMMANDS).length)
  const script = `for (const file of ${JSON.stringify([...new Set(loaded)])}) await import(file)`
  const ended = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  expect(ended).toEqual({ stdout: '', stderr: '' })
})

it('from init to verify', async () => {
  const here = await newWorkspace({})
  const file = 'starter.yaml'
  const spillway = async (...args: string[]) => {
    const { code, stdout, stderr } = await here.cli(...args)
    expect({ args, code }, stderr).toEqual({ args, code: 0 })
    return { stdout, stderr }
  }
  expect((await spillway('init', file)).stdout).toContain(`spillway check ${file}`)
  expect(JSON.parse((await spillway('schema')).stdout)).toHaveProperty('properties.extract')
  const starter = join(here.folder, file)
  writeFileSync(
    starter,
    readFileSync(starter, 'utf8').replace('[example.com]', '[example.com, scatterholt.com]'),
  )
  const flags = ['--domain', 'scatterholt.com', '--from', '2024-01-01', '--until', '2024-03-01']
  expect((await spillway('check', file, ...flags)).stdout).toContain('the token is accepted')
  expect((await spillway('plan', file, ...flags)).stdout).toContain('0 done')
  const ran = await spillway('run', file, ...flags, '--log-format', 'json', '--log-level', 'debug')
  expect(ran.stdout).toContain('verify starter.yaml')
  for (const line of ran.stderr.split('\n').filter((each) => each !== '')) {
    expect(JSON.parse(line)).toHaveProperty('level')
  }
  expect((await spillway('status', file)).stdout).toContain('partitions done')
  expect((await spillway('verify', file)).stdout).toContain('the files are intact')
  expect((await spillway('report', '1', '--format', 'json')).stdout).toMatch(/^\{.*\}\n$/)
})

// 300,000 rows.
it.runIf(THOROUGH)('the demo exports without a token or a network, with its own pipeline', async () => {
  const cwd = temporaryFolder()
  const { code, stdout, stderr } = await runCli({ args: ['demo'], cwd })
  expect(code).toBe(0)
  expect(stderr).toContain('4 made-up domains')
  expect(stdout).toMatch(/^demo: complete in /)
  expect(stdout).toMatch(/rows +300,000 /)
  expect(existsSync(join(cwd, 'output/demo/_SUCCESS'))).toBe(true)
  const manifest = JSON.parse(await readFile(join(cwd, 'output/demo/_manifest.json'), 'utf8'))
  expect(manifest.totals.rows).toBe(300_000)
  // The demo then loads a table and queries it.
  expect(stdout).toMatch(
    / load \/\S+\/pipelines\/demo\.yaml --to duckdb:output\/demo\.db\n.*300,000 rows loaded/,
  )
  expect(stdout).toMatch(
    / query \/\S+\/pipelines\/demo\.yaml --in duckdb:output\/demo\.db ".*"\n {2}source_name +credentials\n/,
  )
})

it('the sandbox serves until it gets a signal', async () => {
  const child = spawn(process.execPath, [CLI, 'sandbox', '--port', '0', '--token', 'a-token'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  const [banner] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  const [, baseUrl = ''] = /(http:\S+)/.exec(banner) ?? []
  const headers = { authorization: 'Bearer a-token' }
  expect((await fetch(new URL('/tokens/test', baseUrl), { headers })).status).toBe(200)
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})
