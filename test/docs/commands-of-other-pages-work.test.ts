import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type * as z from 'zod'
import { COMMANDS } from '../../src/cli/commands/index.ts'
import { ENTRY_SCHEMAS } from '../../src/state/journal-entry.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut as inTestOrProcess } from '../support/in-this-process.ts'
import { startSandbox } from '../support/sandbox.ts'
import { blocksOf, blockUnder, PAGES, textOf } from './page.ts'
import { newShell, runBlock, runBlocks } from './run-blocks.ts'

const shellOf = (page: string) => blocksOf(page).filter(({ language }) => language === 'sh')

it('the commands of the pages about pipelines and warehouses work', async () => {
  const text = `${PIPELINE}load:
  keep: 1d
`
  const settings = { language: 'yaml', text, under: [] }
  // Commands that need a PostgreSQL server are tested with the warehouses.
  const tables = shellOf('docs/warehouses.md').map((block) => ({
    ...block,
    text: block.text.replace(/^.*postgres:.*$/gm, ''),
  }))
  const pages = [...shellOf('docs/pipeline.md'), ...tables, ...shellOf('docs/erasure.md')]
  const printed = await runBlocks([settings, ...pages])
  expect(printed).toMatch(/acme: pruned 6 partitions/)
  expect(printed).toMatch(/acme: would remove 0 rows of 1 identity/)
  expect(printed).toMatch(/^create table .*credentials/im)
})

it('every command and flag that a page names exists', async () => {
  const help = new Map<string, string>()
  const cwd = scratchFolder()
  for (const name of Object.keys(COMMANDS))
    help.set(name, (await inTestOrProcess({ args: [name, '--help'], cwd })).stdout)
  const wrong: string[] = []
  for (const page of PAGES) {
    for (const [, command = '', rest = ''] of textOf(page).matchAll(/\bspillway ([a-z]+)\b([^`\n|&;#]*)/g)) {
      // In a sentence any word may follow the name, so an unknown command counts only with flags.
      const flags = [...rest.matchAll(/(?<= )--[a-z][a-z-]*/g)].map(([flag]) => flag)
      const known = help.get(command)
      const isWrong = known === undefined ? flags.length > 0 : flags.some((flag) => !known.includes(flag))
      if (isWrong && command !== 'completion') wrong.push(`${page}: spillway ${command}${rest}`)
    }
  }
  expect(wrong).toEqual([])
})

const PAGE = 'docs/match.md'
const CASE = "Without passwords and other people's addresses"

const PIPELINE = `# acme.yaml
name: acme
service:
  base_url: \${SPILLWAY_BASE_URL}
extract:
  domains: [scatterholt.com]
  windows: { from: 2024-01-01, until: 2024-07-01, every: month }
`
const PEOPLE = `employeeId,mail
1041,Ada.Abel@scatterholt.com
1063,NICO.TARN@SCATTERHOLT.COM
1085,olga.reed@scatterholt.com
`

it('its commands find the people that it shows', async () => {
  const sandbox = await startSandbox({ records: 2000 })
  const shell = newShell({
    SPILLWAY_BASE_URL: sandbox.baseUrl,
    SPILLWAY_TOKEN: sandbox.token,
    SPILLWAY_MASK_KEY: 'an example key of thirty-two bytes',
  })
  writeFileSync(join(shell.folder, 'people.csv'), PEOPLE)
  const file = { language: 'yaml', text: PIPELINE + blockUnder(PAGE, CASE, 'yaml'), under: [] }
  const run = { language: 'sh', text: 'spillway run acme.yaml', under: [] }
  let printed = ''
  for (const block of [file, run, ...blocksOf(PAGE).filter(({ language }) => language === 'sh')])
    printed += await runBlock(block, shell)
  for (const line of blockUnder(PAGE, CASE, 'text').trim().split('\n')) expect(printed).toContain(line)
})

it('the page of the state names every kind of entry, with all its fields', () => {
  const rows = [...textOf('docs/state.md').matchAll(/^\| `(\w+)` \| (.*?) \|/gm)]
  const told = new Map(
    rows.map(([, kind, fields]) => [kind!, [...fields!.matchAll(/`(\w+)`/g)].map(([, name]) => name!)]),
  )
  for (const [kind, schema] of Object.entries(ENTRY_SCHEMAS)) {
    const fields = Object.keys((schema as z.ZodObject).shape)
    expect([kind, told.get(kind)?.toSorted()]).toEqual([kind, fields.sort()])
  }
})
