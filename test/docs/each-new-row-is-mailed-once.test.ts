import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { expect, it } from 'vitest'
import { startSandbox } from '../support/sandbox.ts'
import { blocksOf } from './page.ts'
import { newShell, runBlock } from './run-blocks.ts'

const RECIPE = 'A daily mail of what is new'

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
    for (const block of blocksOf('docs/recipes.md').filter(({ under }) => under.includes(RECIPE)))
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
