import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { expect, inject } from 'vitest'
import { atTheEnd } from './at-the-end.ts'

/** The folder of the package under test: installed by npm (end-to-end tests), or this repository with its build. */
export const PACKAGE = packageFolder(inject('installed'))

/** The command, as the package's `bin` names it. */
export const CLI = join(PACKAGE, 'dist/cli/main.js')

/** The folder in `dist` of the modules that the package loads. A build keeps those of earlier ones beside them. */
export function chunksFolder(folder: string): string {
  return /"\.\/(chunks-\w+)\//.exec(readFileSync(join(folder, 'dist/index.js'), 'utf8'))?.[1] ?? ''
}

function packageFolder(installed: string | undefined): string {
  return installed === undefined
    ? join(import.meta.dirname, '../..')
    : join(installed, 'node_modules/spillway')
}

export type Ended = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export type RunArgs = {
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly onStart?: (kill: (signal: NodeJS.Signals) => void, pid: number) => void
  readonly onStderr?: (text: string) => void
}

export type Running = {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  /** Resolves once a condition holds; rejects when the process ends before. */
  until(isSo: (stderr: string) => boolean): Promise<void>
  readonly result: Promise<Ended>
}

/**
 * Starts the built command as a child process, with nothing of this process's environment but the path. It does not
 * outlive the tests of the file.
 */
export function start(args: readonly string[], cwd: string | undefined, env: RunArgs['env'] = {}): Running {
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: tmpdir(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  atTheEnd(() => child.kill('SIGKILL'))
  const [stdout, stderr] = [textOf(child.stdout), textOf(child.stderr)]
  let hasEnded = false
  return {
    child,
    async until(isSo) {
      while (!isSo(stderr())) {
        if (hasEnded) throw new Error(`the command has ended: ${stderr()}`)
        await setTimeout(5)
      }
    },
    result: once(child, 'close').then(([code, signal]) => {
      hasEnded = true
      return { code, signal, stdout: stdout(), stderr: stderr() }
    }),
  }
}

/** What has come of a stream so far. */
export function textOf(stream: Readable): () => string {
  let all = ''
  stream.setEncoding('utf8').on('data', (text: string) => (all += text))
  return () => all
}

export function runCli({ args, env, cwd, onStart, onStderr }: RunArgs): Promise<Ended> {
  const { child, result } = start(args, cwd, env)
  const stderr = textOf(child.stderr)
  child.stderr.on('data', () => onStderr?.(stderr()))
  onStart?.((signal) => child.kill(signal), child.pid ?? -1)
  return result
}

/** Requires the exit code of a command, and what stderr says. A failure shows what it printed. */
export async function exits<T extends Pick<Ended, 'code' | 'stderr'>>(
  code: number,
  command: Promise<T>,
  ...says: readonly (string | RegExp)[]
): Promise<T> {
  const ended = await command
  expect(ended.code, ended.stderr).toBe(code)
  for (const each of says) expect(ended.stderr).toMatch(each)
  return ended
}

/** The values that a command printed, each on a line of its own. */
// biome-ignore lint/suspicious/noExplicitAny: whatever JSON was printed
export function jsonLines(text: string): any[] {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}
