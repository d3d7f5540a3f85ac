import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { some } from '../support/thorough.ts'
import { type Block, blocksOf, ROOT } from './page.ts'
import { runBlocks } from './run-blocks.ts'

const recipes = new Map<string, Block[]>()
for (const block of blocksOf('docs/recipes.md')) {
  const [title = ''] = block.under
  recipes.set(title, [...(recipes.get(title) ?? []), block])
}

/** Output by which a recipe shows that it works. */
const SHOWS: Readonly<Record<string, RegExp>> = {
  'Three years within a monthly quota': /share of a month: 5,000 searches, 0 of them spent/,
  'A daily mail of what is new': /^Subject: Leaked credentials of ours are new\n\nid,/m,
  'A weekly mail of new matches':
    /^Subject: Leaked credentials of our people are new\n\n\{"mail":.*"id":\d+,/m,
  'Sharing with auditors': /Signature Verified Successfully\n(credentials\/\S+: OK\n)+$/,
  'Shared settings for many pipelines': /^ {2}retries: 20$/m,
}

describe('each recipe', () => {
  it.each(some([...recipes], 2))('works: %s', async (title, blocks) => {
    expect(await runBlocks(blocks)).toMatch(SHOWS[title] ?? /./)
  })
})

const PAGE = 'docs/troubleshooting.md'

it('the commands of the page about trouble work', async () => {
  const acme = recipes.get('Moving to another machine')!.filter(({ language }) => language === 'yaml')
  await runBlocks([...acme, ...blocksOf(PAGE)])
})

it('every message of the page is one that the source has', () => {
  const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'))
    .join('\n')
  const rows = readFileSync(join(ROOT, PAGE), 'utf8').matchAll(/^\| `([^`]+)` \|/gm)
  const parts = [...rows].flatMap(([, message = '']) => message.split('…').map((part) => part.trim()))
  expect(parts.length).toBeGreaterThan(10)
  expect(parts.filter((part) => !source.includes(part))).toEqual([])
})
