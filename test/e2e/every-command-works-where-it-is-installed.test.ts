import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { chunksFolder, PACKAGE, runCli, start } from '../support/run-cli.ts'
import { THOROUGH } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'

const execute = promisify(execFile)

// Each command is a file of the bundle that is loaded on demand. Most tests of commands run the sources.

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
  const ended = await execute(process.execPath, ['--input-type=module', '-e', script])
  expect(ended).toEqual({ stdout: '', stderr: '' })
})

// 300,000 rows.
it.runIf(THOROUGH)('the demo exports without a token or a network, with its own pipeline', async () => {
  const cwd = scratchFolder()
  const { code, stdout, stderr } = await runCli({ args: ['demo'], cwd })
  expect(code).toBe(0)
  expect(stderr).toContain('4 made-up domains')
  expect(stdout).toMatch(/^demo: complete in /)
  expect(stdout).toMatch(/rows +300,000 /)
  expect(existsSync(join(cwd, 'output/demo/_SUCCESS'))).toBe(true)
  const manifest = JSON.parse(readFileSync(join(cwd, 'output/demo/_manifest.json'), 'utf8'))
  expect(manifest.totals.rows).toBe(300_000)
  expect(stdout).toMatch(
    / load \/\S+\/pipelines\/demo\.yaml --to duckdb:output\/demo\.db\n.*300,000 rows loaded/,
  )
  // What it made it may replace.
  expect((await runCli({ args: ['demo'], cwd })).code).toBe(0)
  expect((await runCli({ args: ['verify', join(cwd, 'output/demo')], cwd })).code).toBe(0)
  expect(stdout).toMatch(
    / query \/\S+\/pipelines\/demo\.yaml --in duckdb:output\/demo\.db ".*"\n {2}source_name +credentials\n/,
  )
})

it('the sandbox serves until it gets a signal', async () => {
  const { child, result } = start(['sandbox', '--port', '0', '--token', 'a-token'], scratchFolder())
  const [banner] = (await once(child.stdout, 'data')) as [string]
  const [, baseUrl = ''] = /(http:\S+)/.exec(banner) ?? []
  const headers = { authorization: 'Bearer a-token' }
  expect((await fetch(new URL('/tokens/test', baseUrl), { headers })).status).toBe(200)
  child.kill('SIGTERM')
  expect(await result).toMatchObject({ code: 0, signal: null, stderr: '' })
})

it('plan and run name parquetjs-lite where it is not installed, before they send a request', async () => {
  const here = await newWorkspace({ load: { engine: 'parquetjs-lite' } })
  // Without the packages beside it.
  for (const part of ['dist', 'package.json'])
    cpSync(join(PACKAGE, part), join(here.folder, 'alone', part), { recursive: true })
  for (const command of ['plan', 'run']) {
    const args = [join(here.folder, 'alone/dist/cli/main.js'), command, 'pipeline.yaml']
    const options = { cwd: here.folder, env: { ...process.env, ...here.env } }
    const ended = await execute(process.execPath, args, options).catch((error) => error)
    expect({ command, code: ended.code }).toEqual({ command, code: 2 })
    expect(ended.stderr).toContain(
      'The engine parquetjs-lite needs the package parquetjs-lite, which is not installed (load.engine). Leave out load.engine,',
    )
  }
  expect(here.searches()).toEqual([])
})
