import { existsSync } from 'node:fs'
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { exits } from '../support/run-cli.ts'
import { monthsUntil, newWorkspace } from '../support/workspace.ts'

const PARTS = { extract: { domains: ['quillmere.net'], windows: monthsUntil('2024-02-01') } }

it.each([
  ['rows.csv', 'id,domain\n1,example.com\n'],
  ['empty.db', ''],
])('an existing file of another kind is no target: %s, exit 2, and it stays', async (name, content) => {
  const here = await exportedWorkspace(PARTS)
  const path = join(here.folder, name)
  await writeFile(path, content)
  const [target, says] = [`duckdb:${name}`, `it is not a DuckDB file (${path})`]
  await exits(2, here.call('load', '--to', target), says)
  await exits(2, here.call('run', '--load', target), says)
  await exits(2, here.call('query', 'SELECT 1', '--in', target))
  expect(await readFile(path, 'utf8')).toBe(content)
})

it('a target in the data set is refused, exit 2, also through a link, and before a run exports anything', async () => {
  const here = await exportedWorkspace(PARTS)
  const before = await readdir(here.output, { recursive: true })
  await symlink(here.output, join(here.folder, 'link'))
  for (const target of ['out/leaks.db', join(here.output, '_manifest.json'), 'link/leaks.db'])
    await exits(2, here.call('load', '--to', `duckdb:${target}`), 'would lie in the folder of the data set')
  expect(await readdir(here.output, { recursive: true })).toEqual(before)

  const empty = await newWorkspace(PARTS)
  await exits(2, empty.call('run', '--load', `duckdb:${join(empty.output, 'leaks.db')}`))
  expect(existsSync(empty.output)).toBe(false)
})
