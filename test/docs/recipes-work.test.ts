import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startSandbox } from '../../src/sandbox/index.ts'
import { startBucket } from '../support/bucket.ts'
import { type Block, blocksOf, commandFolder, ROOT, temporaryFolder } from './page.ts'

const execute = promisify(execFile)

/** Writes the files of a recipe, carries its commands out, and gives what they print. */
async function carryOut(
  blocks: readonly Block[],
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const sandbox = await startSandbox({ records: 12, requestsPerSecond: 0, basicRequestsPerSecond: 0 })
  onTestFinished(() => sandbox.close())
  const folder = temporaryFolder()
  let output = ''
  const env = {
    PATH: `${commandFolder(folder)}:${process.env.PATH}`,
    SPILLWAY_BASE_URL: sandbox.baseUrl,
    SPILLWAY_TOKEN: sandbox.token,
    ...more,
  }
  for (const { language, text } of blocks) {
    // The service of the tests is as quick as it is asked to be.
    const quick = text.replace('base_url:', 'requests_per_second: 100\n  base_url:')
    const file = /^# (\S+\.yaml)\n/.exec(text)?.[1]
    if (file !== undefined)
      writeFileSync(join(folder, file), text.includes('requests_per_second') ? text : quick)
    if (language !== 'sh') continue
    const { stdout } = await execute('/bin/sh', ['-e', '-c', text], { cwd: folder, env })
    output += stdout
  }
  return output
}

const recipes = new Map<string, Block[]>()
for (const block of blocksOf('docs/recipes.md')) {
  const [title = ''] = block.under
  recipes.set(title, [...(recipes.get(title) ?? []), block])
}

/** What the recipe is about, as its commands print it. */
const SHOWS: Readonly<Record<string, RegExp>> = {
  'Three years within a monthly quota':
    /share of a month: 5,000 searches, 0 of them sent; so at least 1 calendar month/,
  'Retiring a domain': /brambleworth\.org/,
  'Shared settings for many pipelines': /service\.retries +20 +base\.yaml:5:12 \(extended\)/,
}

describe('each recipe', () => {
  it.each([...recipes])('works: %s', { timeout: 60_000 }, async (title, blocks) => {
    const isLake = title === 'Object storage'
    const bucket = isLake ? await startBucket() : null
    if (bucket !== null) onTestFinished(() => bucket.double.close())
    expect(await carryOut(blocks, bucket?.env)).toMatch(SHOWS[title] ?? /./)
  })
})

const PAGE = 'docs/troubleshooting.md'

it('the commands for trouble work', { timeout: 60_000 }, async () => {
  const acme = recipes.get('Behind a proxy')!.filter(({ language }) => language === 'yaml')
  await carryOut([...acme, ...blocksOf(PAGE)])
})

it('every message of the page is one that the source has', () => {
  const source = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'))
    .join('\n')
  const rows = readFileSync(join(ROOT, PAGE), 'utf8').matchAll(/^\| `([^`]+)` \|/gm)
  const pieces = [...rows].flatMap(([, message = '']) => message.split('…').map((piece) => piece.trim()))
  expect(pieces.length).toBeGreaterThan(20)
  expect(pieces.filter((piece) => !source.includes(piece))).toEqual([])
})
