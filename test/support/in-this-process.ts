import { AsyncLocalStorage } from 'node:async_hooks'
import { Writable } from 'node:stream'
import { format } from 'node:util'
import { runCommandLine } from '../../src/cli/run-command-line.ts'
import { Output } from '../../src/cli/terminal/output.ts'
import { Screen } from '../../src/cli/terminal/screen.ts'
import { Signals } from '../../src/cli/terminal/signals.ts'
import { type Ended, type RunArgs, runCli } from './run-cli.ts'
import { isOfTheDay, THOROUGH } from './thorough.ts'

/** Variables that libraries read from the environment of the process. */
const OF_THE_PROCESS = /^(?:AWS_|PG|NODE_|https?_proxy$|no_proxy$)/i

let calls = 0

/**
 * Runs a command line through the entry function of the command, in this process: ten times as fast as starting one.
 * Runs the built command instead for every third call in thorough runs, or when the environment holds variables that
 * only a process of its own can get.
 */
export async function carryOut(command: RunArgs): Promise<Ended> {
  const isOfAProcess = Object.entries(command.env ?? {}).some(
    ([name, value]) => OF_THE_PROCESS.test(name) && process.env[name] !== value,
  )
  if (isOfAProcess || (THOROUGH && isOfTheDay(calls++))) return runCli(command)
  return carryOutHere(command)
}

/** The same, but always in this process. */
export function carryOutHere({ args, env, cwd = process.cwd() }: RunArgs): Promise<Ended> {
  return inThisProcess(args, cwd, env)
}

/** Runs a command line in this process, with only the given environment. */
export async function inThisProcess(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  stdout = new Collector(),
): Promise<Ended & { readonly code: number }> {
  const stderr = new Collector()
  const world = {
    env,
    cwd,
    program: 'spillway',
    stdout: new Output(stdout as unknown as NodeJS.WriteStream, env),
    screen: new Screen(stderr as unknown as NodeJS.WriteStream, env),
    signals: new Signals(),
  }
  listenToConsole()
  const code = await printed.run(stdout, () => runCommandLine(args, world))
  return { code, signal: null, stdout: stdout.text, stderr: stderr.text }
}

/** Where the console of a command line prints: yargs shows help and completions by itself. */
const printed = new AsyncLocalStorage<Collector>()
const listening = new WeakSet<typeof console.log>()

/** Each test file has a console of its own. */
function listenToConsole(): void {
  const { log } = console
  if (listening.has(log)) return
  console.log = (...words: unknown[]) => {
    const stdout = printed.getStore()
    if (stdout === undefined) log(...words)
    else stdout.write(`${format(...words)}\n`)
  }
  listening.add(console.log)
}

export class Collector extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}
