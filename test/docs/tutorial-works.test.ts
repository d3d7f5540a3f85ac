import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { type Block, blocksOf, blockUnder } from './page.ts'
import { newShell, runBlock } from './run-blocks.ts'

const PAGE = 'docs/tutorial.md'
const SANDBOX = 'A service to ask'
const STOPPED = 'Run, and stop it'

it('its commands lead from nothing to a query, with a run that is stopped on the way', async () => {
  const blocks = blocksOf(PAGE)
  const [service, exports] = blocks.filter(({ under }) => under.includes(SANDBOX)) as [Block, Block]
  const { env, banner } = await startService(service)
  // The page sets the variables that the sandbox prints, except for the port.
  for (const line of exports.text.trim().split('\n'))
    expect(banner.replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:8787')).toContain(line.replace('export ', ''))

  const shell = newShell(env)
  const [stopped] = blocks.filter(({ under, language }) => under.includes(STOPPED) && language === 'sh')
  const rest = blocks.filter(
    ({ under }) => under.length > 0 && !under.includes(SANDBOX) && under[0] !== 'Install',
  )
  let printed = ''
  for (const block of rest) {
    if (block === stopped) printed += await stoppedRun(block.text, shell)
    // Slow enough to be stopped.
    else printed += await runBlock(block, shell, 8)
  }
  for (const line of [
    'acme.yaml is written',
    'the token is accepted',
    'acme: 12 partitions: 0 done, 0 partial, 12 pending',
    'acme: interrupted; what is committed stays',
    'acme: complete in',
    ...blockUnder(PAGE, 'Is it all there?', 'text').trim().split('\n'),
    ...lastBlockUnder('Query it').trim().split('\n'),
    'shards: 0 loaded, 0 replaced, 12 there already',
  ]) {
    expect(printed).toContain(line)
  }
  const outputs = ['output/acme/_report.html', 'leaks.db']
  expect(outputs.filter((path) => !existsSync(join(shell.folder, path)))).toEqual([])
})

/** The sandbox as the page starts it, on a free port and without a limit. */
async function startService({ text }: Block) {
  const { folder, env } = newShell({})
  const command = `exec ${text.trim()} --port 0 --requests-per-second 0`
  const child = spawn('/bin/sh', ['-c', command], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    child.kill('SIGINT')
    await once(child, 'close')
  })
  const [banner] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  const [, baseUrl = ''] = /SPILLWAY_BASE_URL=(\S+)/.exec(banner) ?? []
  const [, token = ''] = /SPILLWAY_TOKEN=(\S+)/.exec(banner) ?? []
  return { banner, env: { SPILLWAY_BASE_URL: baseUrl, SPILLWAY_TOKEN: token } }
}

/** Presses Ctrl-C once a page is committed. */
async function stoppedRun(text: string, { folder, env }: ReturnType<typeof newShell>): Promise<string> {
  const child = spawn('/bin/sh', ['-c', `exec ${text}`], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    printed += chunk
  })
  const ended = once(child, 'close')
  const log = join(folder, 'output/acme/_state/log')
  const isCommitted = () =>
    existsSync(log) &&
    readdirSync(log).some((name) => readFileSync(join(log, name), 'latin1').includes('"rows"'))
  while (!isCommitted() && child.exitCode === null) await setTimeout(10)
  child.kill('SIGINT')
  expect(await ended).toEqual([130, null])
  return printed
}

function lastBlockUnder(heading: string): string {
  return blocksOf(PAGE).filter(({ under, language }) => under.includes(heading) && language === 'text')[0]!
    .text
}
