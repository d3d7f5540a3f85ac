import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readPipeline } from '../../src/pipeline/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'

it('init writes a pipeline file that is valid once the service is named', async () => {
  const folder = scratchFolder()
  const { code, stdout, stderr } = await inThisProcess(['init'], folder)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('spillway check spillway.yaml')
  const written = join(folder, 'spillway.yaml')
  expect(statSync(written).mode & 0o777).toBe(0o600)
  const starter = readFileSync('pipelines/starter.yaml', 'utf8')
  expect(readFileSync(written, 'utf8')).toBe(
    starter.replace('name: starter ', 'name: spillway').replace('output/starter ', 'output/spillway'),
  )
  const env = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }
  await expect(readPipeline(written, { env, cwd: folder })).resolves.toMatchObject({ name: 'spillway' })
})

it.each([
  ['Acme Corp (EU).yml', 'acme-corp-eu'],
  ['новый.yaml', 'pipeline'],
  ['1e3.yaml', '1e3'],
])('init %s names the pipeline %s', async (file, name) => {
  const folder = scratchFolder()
  await exits(0, inThisProcess(['init', file], folder))
  const env = { SPILLWAY_BASE_URL: 'https://api.example.com/firework' }
  const pipeline = await readPipeline(join(folder, file), { env, cwd: folder })
  expect([pipeline.name, pipeline.load.pathAsGiven]).toEqual([name, `output/${name}`])
})

it('init never overwrites', async () => {
  const folder = scratchFolder()
  writeFileSync(join(folder, 'mine.yaml'), 'precious')
  const { code, stdout, stderr } = await inThisProcess(['init', 'mine.yaml'], folder)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain('There is such a file already (mine.yaml)')
  expect(readFileSync(join(folder, 'mine.yaml'), 'utf8')).toBe('precious')
})

it('init into a missing folder is exit 2', async () => {
  await exits(2, inThisProcess(['init', 'no/such/folder.yaml'], scratchFolder()), 'ENOENT')
})

it('schema prints a JSON Schema and nothing else', async () => {
  const { code, stdout, stderr } = await inThisProcess(['schema'], scratchFolder())
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    properties: { service: {}, extract: {}, transform: {}, load: {} },
  })
})

const demo = (folder: string) =>
  exits(2, inThisProcess(['demo'], folder), 'The demo would replace what it did not make')

it('the demo refuses a folder that it did not make', async () => {
  const folder = scratchFolder()
  const path = join(folder, 'output/demo')
  mkdirSync(path, { recursive: true })
  writeFileSync(join(path, '_manifest.json'), '{}')
  const { stderr } = await demo(folder)
  expect(stderr).toContain('(output/demo)')
  expect(readdirSync(path)).toEqual(['_manifest.json'])
})

it('the demo refuses a database that it did not make, or that was changed since', async () => {
  const folder = scratchFolder()
  mkdirSync(join(folder, 'output'))
  const database = join(folder, 'output/demo.db')
  writeFileSync(database, 'precious')
  expect((await demo(folder)).stderr).toContain('(output/demo.db)')
  mkdirSync(join(folder, 'output/demo'))
  const made = { database: { bytes: 7, modifiedMs: 1 } }
  writeFileSync(join(folder, 'output/demo/_demo.json'), JSON.stringify(made))
  expect((await demo(folder)).stderr).toContain('(output/demo.db)')
  expect(readFileSync(database, 'utf8')).toBe('precious')
})
