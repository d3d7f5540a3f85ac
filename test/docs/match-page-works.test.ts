import { expect, it } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { blocksOf, blockUnder } from './page.ts'
import { newShell, runBlock } from './run-blocks.ts'

const PAGE = 'docs/match.md'

it('its case leads from a pipeline file to the people whose password is still allowed', {
  timeout: 60_000,
}, async () => {
  const sandbox = await startSandbox({ records: 2000 })
  const shell = newShell({
    SPILLWAY_BASE_URL: sandbox.baseUrl,
    SPILLWAY_TOKEN: sandbox.token,
    SPILLWAY_MASK_KEY: 'an example key of thirty-two bytes',
  })
  let printed = ''
  for (const block of blocksOf(PAGE).filter(({ under }) => under.includes('A case'))) {
    // Each block has a shell of its own.
    if (!block.text.includes('openssl')) printed += await runBlock(block, shell)
  }
  const [said, ...lines] = blockUnder(PAGE, 'A case', 'text').trim().split('\n').reverse()
  for (const line of lines) expect(printed).toContain(line)
  expect(said).toMatch(/^4 of 5 people: /)
  // The other commands of the page, on what is there now.
  for (const block of blocksOf(PAGE).filter(
    ({ under, language }) => !under.includes('A case') && language === 'sh',
  )) {
    const text = block.text.replaceAll('--column mail', '--column userPrincipalName')
    await runBlock({ ...block, text }, shell)
  }
})
