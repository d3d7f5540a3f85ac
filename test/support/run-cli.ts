import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject } from 'vitest'

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
  /** Called when the process has started. */
  readonly onStart?: (kill: (signal: NodeJS.Signals) => void, pid: number) => void
  /** Called with all of stderr so far. */
  readonly onStderr?: (text: string) => void
}

/** Runs the built command as a child process, with nothing of this process's environment but the path. */
export function runCli({ args, env = {}, cwd, onStart, onStderr }: RunArgs): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CLI, ...args], {
      cwd,
      env: { PATH: process.env.PATH ?? '', HOME: tmpdir(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
      onStderr?.(stderr)
    })
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
    onStart?.((signal) => child.kill(signal), child.pid ?? -1)
  })
}

/** Requires the exit code of a command. A failure shows what it printed. */
export async function exits<T extends Pick<Ended, 'code' | 'stderr'>>(
  code: number,
  command: Promise<T>,
): Promise<T> {
  const ended = await command
  expect(ended.code, ended.stderr).toBe(code)
  return ended
}
