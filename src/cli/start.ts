import { basename, relative } from 'node:path'
import { FAILED } from './exit-code.ts'
import { keepYoungGenerationSmall } from './heap.ts'
import { Output } from './output.ts'
import { runCommandLine } from './run-command-line.ts'
import { Screen } from './screen.ts'
import { shellWord } from './shell.ts'
import { Signals } from './signals.ts'

/** Carries out what this process was called for. @returns the exit code */
export function start(): Promise<number> {
  keepYoungGenerationSmall()
  const screen = new Screen(process.stderr, process.env)
  // A defect that no command could catch: the state of things is unknown, and what is committed is on disk. Its
  // message may quote data.
  process.on('uncaughtException', (error) => {
    screen.clear()
    screen.write(`spillway: An error that was not foreseen: ${error.name}\n`, 'error')
    process.exit(FAILED)
  })
  // Node's own printing of these is no line of a log.
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => screen.write(`spillway: ${name}: ${message}\n`, 'warn'))
  return runCommandLine(process.argv.slice(2), {
    env: process.env,
    cwd: process.cwd(),
    program: programName(process.argv[1] ?? ''),
    stdout: new Output(process.stdout),
    screen,
    signals: new Signals(),
  })
}

function programName(path: string): string {
  const name = basename(path)
  return name === 'main.js' ? `node ${shellWord(relative(process.cwd(), path))}` : name
}
