import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { expect, it } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { some } from '../support/thorough.ts'
import { type Block, blocksOf, ROOT } from './page.ts'
import { newShell, runBlock, runBlocks } from './run-blocks.ts'

const recipes = new Map<string, Block[]>()
for (const block of blocksOf('docs/recipes.md')) {
  const [title = ''] = block.under
  recipes.set(title, [...(recipes.get(title) ?? []), block])
}

/** Output by which a recipe shows that it works. */
const SHOWS: Readonly<Record<string, RegExp>> = {
  'Three years within a monthly quota': /share of a month: 5,000 searches, 0 of them spent/,
  'A weekly mail of new matches':
    /^Subject: Leaked credentials of our people are new\n\n\{"mail":.*"id":\d+,/m,
  'Sharing with auditors': /Signature Verified Successfully\n(credentials\/\S+: OK\n)+$/,
  'Shared settings for many pipelines': /^ {2}retries: 20$/m,
}

it.each(some([...recipes], 2))('the recipe works: %s', async (title, blocks) => {
  expect(await runBlocks(blocks)).toMatch(SHOWS[title] ?? /./)
})

it('each new row is mailed once, whatever fails in a night', async () => {
  const sandbox = await startSandbox({ records: 60, nastyRate: 0.5 })
  const access = { SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token }
  const shell = newShell(access)
  const mail = join(shell.folder, 'mail')
  const night = async (sends = true): Promise<string> => {
    writeFileSync(mail, sends ? '#!/bin/sh\nexec cat\n' : '#!/bin/sh\nexit 75\n')
    chmodSync(mail, 0o755)
    let out = ''
    // As of `sendmail`, its words are a command.
    const env = { ...shell.env, MAIL: './mail' }
    for (const block of recipes.get('A daily mail of what is new')!)
      out += await runBlock(block, { ...shell, env })
    return out
  }
  const idsIn = (text: string): readonly string[] => {
    const body = text.slice(text.indexOf('\n\n') + 2)
    return (parse(body, { columns: true }) as { id: string }[]).map(({ id }) => id)
  }

  // The mail fails; then the query does.
  await expect(night(false)).rejects.toThrow()
  expect(existsSync(join(shell.folder, 'mailed'))).toBe(false)
  const command = join(shell.folder, 'bin/spillway')
  const whole = readFileSync(command, 'utf8')
  writeFileSync(command, whole.replace('\n', '\n[ "$1" = query ] && exit 1\n'))
  await expect(night()).rejects.toThrow()
  writeFileSync(command, whole)

  const first = await night()
  expect(first).toMatch(/^Subject: Leaked credentials of ours are new\n\nid,identity_name,/)
  const ids = idsIn(first)
  expect(ids.length).toBeGreaterThan(50)
  expect(new Set(ids).size).toBe(ids.length)
  // Nothing is new.
  expect(await night()).toBe('')
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
