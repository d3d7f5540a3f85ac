import { existsSync } from 'node:fs'
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { newWorkspace, type PipelineParts } from '../support/workspace.ts'

const PARTS: PipelineParts = {
  extract: {
    domains: ['quillmere.net'],
    windows: { from: '2024-01-01', until: '2024-02-01', every: 'month' },
  },
}

it.each([
  ['rows.csv', 'id,domain\n1,example.com\n'],
  ['empty.db', ''],
])('an existing file of another kind is no target: %s, exit 2, and it stays', async (name, content) => {
  const here = await exportedWorkspace(PARTS)
  const path = join(here.folder, name)
  await writeFile(path, content)
  for (const words of [
    ['load', 'pipeline.yaml', '--to'],
    ['run', 'pipeline.yaml', '--load'],
  ]) {
    const { code, stderr } = await here.cli(...words, `duckdb:${name}`)
    expect(code, stderr).toBe(2)
    expect(stderr).toContain(`it is not a DuckDB file (${path})`)
  }
  expect((await here.cli('query', 'pipeline.yaml', 'SELECT 1', '--in', `duckdb:${name}`)).code).toBe(2)
  expect(await readFile(path, 'utf8')).toBe(content)
})

it('a target in the data set is refused, exit 2, also through a link, and before a run exports anything', async () => {
  const here = await exportedWorkspace(PARTS)
  const before = await readdir(here.output, { recursive: true })
  await symlink(here.output, join(here.folder, 'link'))
  for (const target of [
    join(here.output, 'leaks.db'),
    join(here.output, '_manifest.json'),
    'link/leaks.db',
  ]) {
    const { code, stderr } = await here.cli('load', 'pipeline.yaml', '--to', `duckdb:${target}`)
    expect(code, stderr).toBe(2)
    expect(stderr).toContain('would lie in the folder of the data set')
  }
  expect(await readdir(here.output, { recursive: true })).toEqual(before)

  const empty = await newWorkspace(PARTS)
  const target = `duckdb:${join(empty.output, 'leaks.db')}`
  expect((await empty.cli('run', 'pipeline.yaml', '--load', target)).code).toBe(2)
  expect(existsSync(empty.output)).toBe(false)
})
