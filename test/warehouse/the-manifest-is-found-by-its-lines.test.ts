import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { MANIFEST_LINES, manifestLines, SHA256SUMS_OF_MANIFEST } from '../../src/state/index.ts'
import { exportedWorkspace } from '../support/exported-data-set.ts'
import { sql } from '../support/read-shards.ts'
import { syncOf } from './following.ts'
import { inDuckdb } from './targets.ts'

const execute = promisify(execFile)

/** As the patterns find it in lines, which all engines of `ddl --sync` are given. */
function found(lines: readonly string[]) {
  const match = (line: string, part: keyof typeof MANIFEST_LINES): string | null =>
    new RegExp(MANIFEST_LINES[part]).exec(line)?.[1] ?? null
  const dataSets = lines.flatMap((line) => match(line, 'dataSet') ?? [])
  const shards = lines
    .filter((line) => match(line, 'path') !== null)
    .map((line) => ({
      path: match(line, 'path'),
      rows: Number(match(line, 'rows')),
      sha256: match(line, 'sha256'),
      partitions: JSON.parse(match(line, 'partitions') ?? 'null'),
    }))
  return { dataSets, shards }
}

it.each([
  ['as it is', ''],
  ['without indents', null],
  ['with tabs', '\t'],
  ['deeper', '      '],
])('SQL and sed find data set and shards in the lines of a manifest: %s', async (_, indent) => {
  const here = await exportedWorkspace({ extract: { domains: ['scatterholt.com', 'quillmere.net'] } })
  const file = join(here.output, '_manifest.json')
  const manifest = await here.manifest()
  const text = await readFile(file, 'utf8')
  const indented = indent === null ? text.replace(/^ +/gm, '') : text.replace(/^/gm, indent)
  await writeFile(file, indented)

  const listed = manifest.shards.map(({ path, rows, sha256, partitions }) => {
    return { path, rows, sha256, partitions }
  })
  const all = { dataSets: [manifest.data_set_id], shards: listed }
  expect(found(indented.split('\n'))).toEqual(all)
  // What scripts hold for engines that cannot read it.
  expect(found(manifestLines(manifest))).toEqual(all)

  const { stdout } = await execute('sh', ['-c', SHA256SUMS_OF_MANIFEST], { cwd: here.output })
  expect(stdout).toBe(listed.map(({ path, sha256 }) => `${sha256}  ${path}\n`).join(''))

  const database = join(here.folder, 'leaks.db')
  await inDuckdb(database, async () => {
    for (const statement of await syncOf(here, 'duckdb')) await sql(statement)
    const entries = await sql(
      'SELECT shard AS path, rows::INT AS rows, sha256, partitions FROM spillway_loads ORDER BY shard',
    )
    expect(entries).toEqual(listed)
  })
})
