import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { reportId, reportMarkdown } from '../../src/cli/commands/report.ts'
import { readPipeline } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'
import { newWorkspace } from '../support/workspace.ts'

const ENV = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }

it('init writes a pipeline file that is valid once the service is named', async () => {
  const folder = scratchFolder()
  const { code, stdout, stderr } = await inThisProcess(['init'], folder)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('spillway check spillway.yaml')
  const written = join(folder, 'spillway.yaml')
  expect(statSync(written).mode & 0o777).toBe(0o600)
  const starter = readFileSync('pipelines/starter.yaml', 'utf8').replace('name: starter ', 'name: spillway')
  expect(readFileSync(written, 'utf8')).toBe(starter.replace('output/starter ', 'output/spillway'))
  expect(await readPipeline(written, { env: ENV, cwd: folder })).toMatchObject({ name: 'spillway' })
})

it.each([
  ['Acme Corp (EU).yml', 'acme-corp-eu'],
  ['новый.yaml', 'pipeline'],
  ['1e3.yaml', '1e3'],
  ['null.yaml', 'null'],
  ['true.yaml', 'true'],
])('init %s names the pipeline %s', async (file, name) => {
  const folder = scratchFolder()
  await exits(0, inThisProcess(['init', file], folder))
  const pipeline = await readPipeline(join(folder, file), { env: ENV, cwd: folder })
  expect([pipeline.name, pipeline.load.pathAsGiven]).toEqual([name, `output/${name}`])
})

it('init never overwrites, and makes no folder', async () => {
  const folder = scratchFolder()
  writeFileSync(join(folder, 'mine.yaml'), 'precious')
  const said = 'There is such a file already (mine.yaml)'
  const { stdout } = await exits(2, inThisProcess(['init', 'mine.yaml'], folder), said)
  expect(stdout).toBe('')
  expect(readFileSync(join(folder, 'mine.yaml'), 'utf8')).toBe('precious')
  await exits(2, inThisProcess(['init', 'no/such/folder.yaml'], folder), 'ENOENT')
})

it('schema prints a JSON Schema and nothing else', async () => {
  const { code, stdout, stderr } = await inThisProcess(['schema'], scratchFolder())
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    properties: { service: {}, extract: {}, transform: {}, load: {} },
  })
})

it('the demo refuses a folder or a database that it did not make, or that was changed since', async () => {
  const folder = scratchFolder()
  const said = 'The demo would replace what it did not make'
  const refuses = (what: string) => exits(2, inThisProcess(['demo'], folder), said, `(${what})`)
  const [path, database] = [join(folder, 'output/demo'), join(folder, 'output/demo.db')]
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, '_manifest.json'), '{}')
  await refuses('output/demo')
  expect(readdirSync(path)).toEqual(['_manifest.json'])
  rmSync(path, { recursive: true })
  writeFileSync(database, 'precious')
  await refuses('output/demo.db')
  mkdirSync(path)
  writeFileSync(join(path, '_demo.json'), JSON.stringify({ database: { bytes: 7, modifiedMs: 1 } }))
  await refuses('output/demo.db')
  expect(readFileSync(database, 'utf8')).toBe('precious')
})

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

it('an invalid report id is exit 2 before any request is sent', async () => {
  for (const text of ['0', '-1', '1.5', '../1', '1e3', '', '12345678901234567890'])
    expect(() => reportId(text), text).toThrow('integers from 1 on')
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

const HTML = [
  ...['<script>alert(1)</script>', '<img src=https://tracker.example/x.png>', '<!-- hidden -->'],
  ...['<?php x ?>', '<svg/onload=a>', '\\<iframe src="//x.example">', '<\u200bb>'],
]
const IMAGE = '![x](https://tracker.example/x.png)'
const IMAGES = [IMAGE, `\\${IMAGE}`, '![x][ref]', '!\u200b[x](//t)']

it('HTML in a report is escaped, and its images are not loaded', () => {
  for (const text of [...HTML, ...IMAGES]) {
    const markdown = reportMarkdown({
      ...{ id: 7, title: text, subtitle: text, summary: `a\n\n${text}`, content: `a\n\n${text}\n` },
      ...{ highlights: [text], tags: [text], format_type: text, published_at: text },
    })
    expect(markdown, text).not.toMatch(/<[A-Za-z/!?]/)
    expect(markdown, text).not.toContain('![')
  }
})

const OTHER_LINKS = [
  ...['[x](javascript:alert(1))', '[x](JaVaScRiPt:alert(1))', '[x](&#106;avascript:alert(1))'],
  ...['[x](javascript&colon;alert(1))', '[x]( \n javascript:alert(1))', '[x](< javascript:alert(1)>)'],
  ...['[x](\u200bjavascript:alert(1))', '[x](data:text/html,a)', '[x](vbscript:a)'],
  ...['[x](file:///etc/passwd)', '[x](//evil.example)', '[x]\n\n[x]: javascript:alert(1)'],
  ...['[x]\n\n  [x]:\n  javascript:alert(1)', '[x][y\nz]\n\n[y\nz]: <javascript:alert(1)>'],
]

it('links lead to the web or to a mailbox, and nowhere else', () => {
  for (const text of OTHER_LINKS) {
    const markdown = reportMarkdown({ id: 7, title: text, summary: text, content: text, highlights: [text] })
    expect(markdown, text).not.toMatch(/\](?:\(|:)/)
  }
  const good =
    '[a](https://example.com/b) [c](HTTP://example.com) [d](mailto:a@example.com)\n\n[e]: https://example.com'
  expect(reportMarkdown({ id: 7, content: good })).toContain(good)
})

it('everything else is unchanged', () => {
  const content = '## Heading\n\n- a < b, 1<2\n- [a link](https://example.com) **bold** `code`\n\n> quoted!'
  expect(reportMarkdown({ id: 7, content })).toContain(content)
})
