import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { scratchFolder } from '../support/at-the-end.ts'
import { inThisProcess } from '../support/in-this-process.ts'
import { exits } from '../support/run-cli.ts'

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
