import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { blocksOf, blockUnder } from './page.ts'
import { newShell, runBlock } from './run-blocks.ts'

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
