#!/usr/bin/env node
import { basename, relative } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { FAILED } from './exit-code.ts'
import { Output } from './output.ts'
import { runCommandLine } from './run-command-line.ts'
import { Screen } from './screen.ts'
import { shellWord } from './shell.ts'
import { Signals } from './signals.ts'

// The young generation stays as small as it is at first. It would grow for the chunks of answers, which are copied
// and dead at once, and the longer those wait to be collected, the more memory they hold.
setFlagsFromString('--semi-space-growth-factor=1')

const screen = new Screen(process.stderr, process.env)

// A defect that no command could catch: the state of things is unknown, and what is committed is on disk. Its
// message may quote data.
process.on('uncaughtException', (error) => {
  screen.clear()
  screen.write(`spillway: An error that was not foreseen: ${error.name}\n`)
  process.exit(FAILED)
})

process.exitCode = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  program: programName(process.argv[1] ?? ''),
  stdout: new Output(process.stdout),
  screen,
  signals: new Signals(),
})

function programName(path: string): string {
  const name = basename(path)
  return name === 'main.js' ? `node ${shellWord(relative(process.cwd(), path))}` : name
}
