import { expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.ts'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut as inTestOrProcess } from '../support/in-this-process.ts'
import { blocksOf, PAGES, textOf } from './page.ts'
import { runBlocks } from './run-blocks.ts'

const shellOf = (page: string) => blocksOf(page).filter(({ language }) => language === 'sh')

it('the commands of the pages about pipelines and warehouses work', async () => {
  const text = `# acme.yaml
name: acme
service:
  base_url: \${SPILLWAY_BASE_URL}
extract:
  domains: [scatterholt.com]
  windows: { from: 2024-01-01, until: 2024-07-01, every: month }
load:
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
  for (const name of Object.keys(COMMANDS)) {
    help.set(name, (await inTestOrProcess({ args: [name, '--help'], cwd })).stdout)
  }
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
