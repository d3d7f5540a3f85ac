import { basename, relative } from 'node:path'
import { runCommandLine } from './run-command-line.ts'
import { FAILED } from './terminal/exit-code.ts'
import { Output } from './terminal/output.ts'
import { Screen } from './terminal/screen.ts'
import { Signals } from './terminal/signals.ts'
import { shellWord } from './terminal/text.ts'

/** Performs the command of this process. @returns the exit code */
export async function start(): Promise<number> {
  const words = process.argv.slice(2)
  const screen = new Screen(process.stderr, process.env)
  // A defect that no command caught: the state of the process is unknown. Committed data is on disk. The message may
  // quote data.
  process.on('uncaughtException', (error) => {
    screen.clear()
    screen.write(`spillway: An unexpected error: ${error.name}\n`, 'error')
    process.exit(FAILED)
  })
  // Warnings of libraries are for developers: `runCommandLine` logs them.
  process.removeAllListeners('warning')
  return runCommandLine(words, {
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
