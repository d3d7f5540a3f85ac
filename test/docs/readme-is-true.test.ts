import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.ts'
import { sql } from '../support/read-shards.ts'
import { startSandbox } from '../support/sandbox.ts'
import { THOROUGH } from '../support/thorough.ts'
import { newWorkspace } from '../support/workspace.ts'
import { blocksOf, PAGES, ROOT, textOf } from './page.ts'
import { newShell, runBlock } from './run-blocks.ts'

const REAL = 'From a token to a table'

// `tutorial-works` carries out the same commands.
// What a page costs is known after some full pages.
it.runIf(THOROUGH)(
  'its commands lead from a token to a table, and run prints what the sample shows',
  async () => {
    const sandbox = await startSandbox({ records: 60_000 })
    const shell = newShell({ SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token })
    const [, file, commands, sample] = blocksOf('README.md').filter(({ under }) => under.includes(REAL))
    // The first block puts the command on the path and names the service. The test does both itself.
    await runBlock(file!, shell)
    const printed = await runBlock(commands!, shell)
    expect(shapeOf(printed)).toContain(shapeOf(sample!.text))
    expect(printed).toMatch(/credentials in duckdb:leaks\.db: [\d,]+ rows loaded/)
    expect(printed).toMatch(/^source_id +source_name +credentials/m)
  },
)

it('its SQL over the files counts by source as the table does, though sources share names', async () => {
  const here = await newWorkspace({ load: { path: 'output/acme' } }, { records: 2000, sources: 30 })
  for (const words of [['run'], ['load', '--to', 'duckdb:leaks.db']]) {
    const [command = '', ...flags] = words
    expect((await here.call(command, ...flags)).code).toBe(0)
  }
  const text = blocksOf('README.md').find(({ language }) => language === 'sql')!.text
  const files = await sql(text.replace('output/acme', join(here.folder, 'output/acme')))
  await sql(`ATTACH '${join(here.folder, 'leaks.db')}' AS leaks (READ_ONLY)`)
  const table = await sql('SELECT source_id, source_name, credentials FROM leaks.credentials_by_source')
  await sql('DETACH leaks')
  const sorted = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row, bigints)).sort()
  expect(sorted(files)).toEqual(sorted(table))
  expect(new Set(files.map(({ source_name }) => source_name)).size).toBeLessThan(files.length)
})

const bigints = (_name: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

/**
 * Removes what differs between runs: figures, and the way in which the command was called.
 * Where chains are divided, as on a busy machine, searches are "at most".
 */
function shapeOf(text: string): string {
  return text
    .replace(/node \S+main\.js/g, 'spillway')
    .replace(/\d[\d,.]*/g, '#')
    .replace(/# [kM]?B/g, '# bytes')
    .replace(/#( ms| s)/g, '# s')
    .replace('at most #', '#')
}

it('every npm script that a page names exists', () => {
  const { scripts } = JSON.parse(textOf('package.json'))
  const named = PAGES.flatMap((page) =>
    [...textOf(page).matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name!),
  )
  expect(named.length).toBeGreaterThan(5)
  expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([])
})

it('every command is in the list of commands, and nothing else', () => {
  const rows = textOf('docs/commands.md').matchAll(/^\| `spillway ([a-z]+)/gm)
  const listed = [...rows].map(([, name]) => name)
  // The demo is for `npm run demo`; completion is of yargs.
  const commands = [...Object.keys(COMMANDS).filter((name) => name !== 'demo'), 'completion']
  expect(listed.sort()).toEqual(commands.sort())
})

it('every link to a page or a heading leads there', () => {
  const dead: string[] = []
  for (const page of PAGES) {
    // Code may look like a link.
    const text = textOf(page).replace(/```[\s\S]*?```|`[^`\n]*`/g, (code) => code.replaceAll('](', ''))
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
      const isThere = existsSync(join(ROOT, file)) && (anchor === undefined || anchorsOf(file).has(anchor))
      if (!isThere) dead.push(`${page}: ${target}`)
    }
  }
  expect(dead).toEqual([])
})

function anchorsOf(page: string): ReadonlySet<string> {
  const headings = textOf(page).matchAll(/^#+ (.*)$/gm)
  return new Set(
    [...headings].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}
