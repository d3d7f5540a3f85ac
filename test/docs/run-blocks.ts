import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { scratchFolder } from '../support/at-the-end.ts'
import { carryOut as inTestOrProcess } from '../support/in-this-process.ts'
import { startSandbox } from '../support/sandbox.ts'
import { THOROUGH } from '../support/thorough.ts'
import { type Block, commandFolder } from './page.ts'

const execute = promisify(execFile)

export type Shell = { readonly folder: string; readonly env: Readonly<Record<string, string>> }

/** Writes the files of a page and runs its commands against a new sandbox. @returns what they print on stdout */
export async function runBlocks(
  blocks: readonly Block[],
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const sandbox = await startSandbox({ records: 12 })
  const shell = newShell({ SPILLWAY_BASE_URL: sandbox.baseUrl, SPILLWAY_TOKEN: sandbox.token, ...more })
  let output = ''
  for (const block of blocks) output += await runBlock(block, shell)
  return output
}

export function newShell(env: Readonly<Record<string, string>>): Shell {
  const folder = scratchFolder()
  return { folder, env: { PATH: `${commandFolder(folder)}:${process.env.PATH}`, ...env } }
}

/** Requests per second of a test: the sandbox has no rate limit. */
const QUICK = 100

/** @returns what the commands of a block print on stdout; empty for a file */
export async function runBlock(
  { language, text }: Block,
  { folder, env }: Shell,
  requestsPerSecond = QUICK,
): Promise<string> {
  const file = /^# (\S+\.yaml)\n/.exec(text)?.[1]
  if (file !== undefined) {
    const quick = text.replace('base_url:', `requests_per_second: ${requestsPerSecond}\n  base_url:`)
    writeFileSync(join(folder, file), text.includes('requests_per_second') ? text : quick)
  }
  if (language !== 'sh') return ''
  if (THOROUGH) return inShell(text, { folder, env })
  const lines = text.trim().split('\n')
  // A line that changes the shell affects the next ones, and a command may span lines: one script from there on.
  const first = lines.findIndex((line) => CHANGES_SHELL.test(line))
  const rest = first < 0 ? '' : lines.splice(first).join('\n')
  let output = ''
  for (const line of lines) {
    const commands = line.split(' && ').map(wordsOf)
    if (commands.includes(null)) output += await inShell(line, { folder, env })
    for (const args of commands.includes(null) ? [] : commands) {
      if (args === null || args.length === 0) continue
      const { code, stdout, stderr } = await inTestOrProcess({ args, cwd: folder, env })
      if (code !== 0) throw new Error(`${line}\n${stderr}`)
      output += stdout
    }
  }
  return rest === '' ? output : output + (await inShell(rest, { folder, env }))
}

async function inShell(text: string, { folder, env }: Shell): Promise<string> {
  return (await execute('/bin/sh', ['-e', '-c', text], { cwd: folder, env })).stdout
}

/** Sets variables, the folder or rights, or goes on in the next line. */
const CHANGES_SHELL = /\b(?:export|unset|cd|umask|set|if|for|while)\b|^\s|^\w+=|\\$|<</

/** The words of a command line that needs no shell; none for a comment, null for any other line. */
function wordsOf(line: string): readonly string[] | null {
  if (/^\s*(?:#.*)?$/.test(line)) return []
  const [, words = null] = PLAIN.exec(line) ?? []
  return words === null
    ? null
    : [...words.matchAll(WORD)].map(([word]) => word.replace(/^(['"])(.*)\1$/, '$2'))
}

const WORD = /'[^']*'|"[^"$`\\]*"|[\w.,:/=@+-]+/g
/** A comment follows `#`. */
const PLAIN = new RegExp(`^spillway((?: +(?:${WORD.source})(?= |$))+) *(?:#.*)?$`)
